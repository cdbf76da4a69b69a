// c = a + b: the smallest proof that code for this GPU loads, runs and gives the right answer.
#include "smoke.hpp"

namespace smoke {
namespace {

__global__ void add(const float* a, const float* b, float* c, std::size_t count) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
        c[i] = a[i] + b[i];
}

}  // namespace

std::vector<Result> vector_add(double scale) {
    const std::size_t count = scaled((1u << 24) + 3, scale);
    constexpr unsigned int block = 256;
    const auto a = random_floats(count, 1), b = random_floats(count, 2);
    const DeviceArray<float> device_a(a), device_b(b);
    DeviceArray<float> device_c(count);

    Result result{.kernel = "vector add fp32", .size = std::to_string(count)};
    result.milliseconds = best_time([&] { device_c.fill(0xff); },
                                    [&] {
                                        add<<<blocks_for(count, 4 * block), block>>>(
                                            device_a.get(), device_b.get(), device_c.get(), count);
                                    });
    result.rate = giga_rate(3.0 * sizeof(float) * count, result.milliseconds);
    result.unit = "GB/s";

    // One IEEE addition, rounded once on both sides: not a bit may differ.
    result.tolerance = 0;
    const auto c = device_c.to_host();
    for (std::size_t i = 0; i < count; ++i) {
        const double error = std::fabs(static_cast<double>(c[i]) - static_cast<double>(a[i] + b[i]));
        if (!(error <= result.error)) result.error = error;
    }
    return {result};
}

}  // namespace smoke
