// Doubles that an instruction carries as a literal of 32 bits: the upper half of the double, not a number of its own.
#include "compared.hpp"

// Each sum and product is one that doubles hold exactly, so that contraction cannot matter.
__host__ __device__ double combined(double value) {
    return (value + 3.0) * 10.0 + (value - 1000.5) * 0.15625 + (value < 47.0 ? 96.0 : 160.0);
}

__global__ void combine(const double* values, double* out) {
    const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = combined(values[i]);
}

int main() {
    constexpr unsigned int count = 256, block = 64;
    std::vector<double> values(count), expected(count);
    for (unsigned int i = 0; i < count; ++i) {
        values[i] = i * 0.5;
        expected[i] = combined(values[i]);
    }
    double* out = room<double>(count);
    combine<<<count / block, block>>>(on_device(values), out);
    return compare(out, expected);
}
