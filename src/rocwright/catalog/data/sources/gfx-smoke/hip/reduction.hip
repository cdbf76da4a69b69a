// A sum by shuffles inside each wave, then across waves: wrong wherever code and GPU disagree on the wave size.
#include "smoke.hpp"

namespace smoke {
namespace {

constexpr unsigned int kBlock = 256;
constexpr unsigned int kSmallestWave = 32;

// HIP's shuffles and votes take no mask and answer for 32 or 64 lanes; CUDA's take one.
__device__ float from_lane_above(float value, unsigned int distance) {
#ifdef __HIP_PLATFORM_AMD__
    return __shfl_down(value, distance);
#else
    return __shfl_down_sync(0xffffffffu, value, distance);
#endif
}

__device__ unsigned int lanes_that_vote() {
#ifdef __HIP_PLATFORM_AMD__
    return static_cast<unsigned int>(__popcll(__ballot(1)));
#else
    return static_cast<unsigned int>(__popc(__ballot_sync(0xffffffffu, 1)));
#endif
}

// warpSize is read as an ordinary value: constant in old HIP releases, known late in new ones.
__device__ float sum_of_wave(float value) {
    for (unsigned int distance = static_cast<unsigned int>(warpSize) / 2; distance > 0; distance /= 2)
        value += from_lane_above(value, distance);
    return value;
}

__global__ void sum_blocks(const float* values, float* partial, std::size_t count) {
    __shared__ float of_wave[kBlock / kSmallestWave];
    const unsigned int size = static_cast<unsigned int>(warpSize);
    const unsigned int lane = threadIdx.x % size, wave = threadIdx.x / size, waves = blockDim.x / size;

    float sum = 0;
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
        sum += values[i];
    sum = sum_of_wave(sum);
    if (lane == 0) of_wave[wave] = sum;
    __syncthreads();
    if (wave == 0) {
        sum = sum_of_wave(lane < waves ? of_wave[lane] : 0.0f);
        if (lane == 0) partial[blockIdx.x] = sum;
    }
}

// What the code was compiled for, and how many lanes really run together.
__global__ void wave_size(unsigned int* compiled, unsigned int* seen) {
    const unsigned int lanes = lanes_that_vote();
    if (threadIdx.x == 0) {
        *compiled = static_cast<unsigned int>(warpSize);
        *seen = lanes;
    }
}

Result sum(double scale) {
    const std::size_t count = scaled(4'000'037, scale);
    const unsigned int grid = static_cast<unsigned int>(scaled(509, scale));
    // Multiples of 2^-10 in [-1, 1): a block's 8,192 values at most sum to less than 2^13, so fp32 holds every partial
    // sum exactly whatever the order, and one value lost or taken twice shows.
    Random random(6);
    std::vector<float> values(count);
    for (float& value : values) value = (static_cast<float>(random.below(2048)) - 1024.0f) * 0x1p-10f;
    const DeviceArray<float> device_values(values);
    DeviceArray<float> device_partial(grid);

    Result result{.kernel = "reduction fp32", .size = std::to_string(count)};
    result.milliseconds = best_time(
        [&] { device_partial.fill(0xff); },
        [&] { sum_blocks<<<grid, kBlock>>>(device_values.get(), device_partial.get(), count); });
    result.rate = giga_rate(sizeof(float) * static_cast<double>(count), result.milliseconds);
    result.unit = "GB/s";

    double seen = 0, expected = 0;
    for (const float part : device_partial.to_host()) seen += part;
    for (const float value : values) expected += value;
    result.error = std::fabs(seen - expected);
    return result;
}

Result lanes() {
    int device = 0, expected = 0;
    SMOKE_HIP(hipGetDevice(&device));
    SMOKE_HIP(hipDeviceGetAttribute(&expected, hipDeviceAttributeWarpSize, device));
    DeviceArray<unsigned int> compiled(1), seen(1);
    Result result{.kernel = "wave size", .size = std::to_string(expected) + " lanes"};
    result.milliseconds = best_time(
        [&] {
            compiled.fill(0);
            seen.fill(0);
        },
        [&] { wave_size<<<1, kBlock>>>(compiled.get(), seen.get()); });
    result.error = std::max(std::fabs(static_cast<double>(compiled.to_host()[0]) - expected),
                            std::fabs(static_cast<double>(seen.to_host()[0]) - expected));
    return result;
}

}  // namespace

std::vector<Result> reduction(double scale) { return {lanes(), sum(scale)}; }

}  // namespace smoke
