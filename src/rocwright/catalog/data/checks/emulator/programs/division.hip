// Quotients that are rounded once: fp32, fp64, and whole numbers with their remainders.
#include "compared.hpp"

__host__ __device__ void divide(int i, double* out) {
    const int above = 1000003 * (i - 32), below = i % 2 == 0 ? i + 3 : -(i * i + 1);
    out[0] = static_cast<float>(above) / static_cast<float>(below);
    out[1] = static_cast<double>(above) / static_cast<double>(below);
    out[2] = above / below;
    out[3] = above % below;
    out[4] = static_cast<unsigned int>(above) / static_cast<unsigned int>(i + 1);
}

__global__ void divide_all(double* out) {
    const int i = static_cast<int>(threadIdx.x);
    divide(i, out + 5 * i);
}

int main() {
    constexpr int count = 64;
    std::vector<double> expected(5 * count);
    for (int i = 0; i < count; ++i) divide(i, &expected[5 * i]);
    double* out = room<double>(expected.size());
    divide_all<<<1, count>>>(out);
    return compare(out, expected);
}
