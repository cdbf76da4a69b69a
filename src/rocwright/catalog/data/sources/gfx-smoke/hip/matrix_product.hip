// C = A B through tiles in LDS, fp32 and fp16 inputs, both accumulated in fp32.
#include "smoke.hpp"

#include <hip/hip_fp16.h>

#include <cfloat>

namespace smoke {
namespace {

constexpr unsigned int kTile = 16;

__device__ float widen(float value) { return value; }
__device__ float widen(__half value) { return __half2float(value); }
__device__ void narrow(float sum, float* out) { *out = sum; }
__device__ void narrow(float sum, __half* out) { *out = __float2half(sum); }

// Row-major, A is m x k, B is k x n. The edges of no dimension need be a multiple of the tile.
template <typename T>
__global__ void multiply(const T* a, const T* b, T* c, unsigned int m, unsigned int n, unsigned int k) {
    __shared__ T tile_a[kTile][kTile];
    __shared__ T tile_b[kTile][kTile];
    const unsigned int x = threadIdx.x, y = threadIdx.y;
    const unsigned int row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;

    float sum = 0;
    for (unsigned int begin = 0; begin < k; begin += kTile) {
        T from_a, from_b;
        narrow(0, &from_a);
        narrow(0, &from_b);
        if (row < m && begin + x < k) from_a = a[row * k + begin + x];
        if (begin + y < k && column < n) from_b = b[(begin + y) * n + column];
        tile_a[y][x] = from_a;
        tile_b[y][x] = from_b;
        __syncthreads();
        for (unsigned int i = 0; i < kTile; ++i) sum = fmaf(widen(tile_a[y][i]), widen(tile_b[i][x]), sum);
        __syncthreads();
    }
    if (row < m && column < n) narrow(sum, &c[row * n + column]);
}

void store(float value, float& out) { out = value; }
void store(float value, __half& out) { out = __float2half(value); }
float load(float value) { return value; }
float load(__half value) { return __half2float(value); }

// The product in double, from the values that the GPU sees (that is, after rounding to T).
template <typename T>
std::vector<double> reference(const std::vector<T>& a, const std::vector<T>& b, unsigned int m, unsigned int n,
                              unsigned int k) {
    std::vector<double> wide_b(b.size()), c(static_cast<std::size_t>(m) * n);
    std::transform(b.begin(), b.end(), wide_b.begin(), [](T value) { return load(value); });
    for (unsigned int row = 0; row < m; ++row)
        for (unsigned int i = 0; i < k; ++i) {
            const double left = load(a[row * k + i]);
            for (unsigned int column = 0; column < n; ++column)
                c[row * n + column] += left * wide_b[i * n + column];
        }
    return c;
}

// `epsilon` is the relative rounding of T, met once, when the sum is stored.
template <typename T>
Result run(const char* name, double epsilon, double scale) {
    // The work grows with the product of the three.
    const auto side = [&](std::size_t odd) { return static_cast<unsigned int>(scaled(odd, std::cbrt(scale))); };
    const unsigned int m = side(1031), n = side(517), k = side(773);
    const auto fill = [](std::size_t count, std::uint64_t seed) {
        const auto values = random_floats(count, seed);
        std::vector<T> rounded(count);
        for (std::size_t i = 0; i < count; ++i) store(values[i], rounded[i]);
        return rounded;
    };
    const std::vector<T> a = fill(m * k, 3), b = fill(k * n, 4);
    const DeviceArray<T> device_a(a), device_b(b);
    DeviceArray<T> device_c(m * n);
    const dim3 grid(blocks_for(n, kTile), blocks_for(m, kTile)), block(kTile, kTile);

    Result result{.kernel = name, .size = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k)};
    result.milliseconds = best_time([&] { device_c.fill(0xff); },
                                    [&] {
                                        multiply<T><<<grid, block>>>(device_a.get(), device_b.get(),
                                                                     device_c.get(), m, n, k);
                                    });
    result.rate = giga_rate(2.0 * m * n * k, result.milliseconds);
    result.unit = "GFLOP/s";

    const auto c = device_c.to_host();
    const auto expected = reference(a, b, m, n, k);
    double largest = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
        const double error = std::fabs(load(c[i]) - expected[i]);
        if (!(error <= result.error)) result.error = error;
        largest = std::max(largest, std::fabs(expected[i]));
    }
    // k roundings of a sum no larger than the largest, each by half a unit of fp32, and one rounding to T.
    result.tolerance = (k * static_cast<double>(FLT_EPSILON) / 2 + epsilon) * largest;
    return result;
}

}  // namespace

std::vector<Result> matrix_product(double scale) {
    return {run<float>("matrix product fp32", 0, scale), run<__half>("matrix product fp16", 0x1p-11, scale)};
}

}  // namespace smoke
