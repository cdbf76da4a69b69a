// Atomics: integer counts gathered in LDS and then in memory, and float sums added straight in memory.
#include "smoke.hpp"

namespace smoke {
namespace {

constexpr unsigned int kBins = 257;
constexpr unsigned int kBlock = 256;
constexpr unsigned int kPerThread = 8;

__global__ void count_keys(const std::uint32_t* keys, unsigned int* counts, std::size_t count) {
    __shared__ unsigned int local[kBins];
    for (unsigned int bin = threadIdx.x; bin < kBins; bin += blockDim.x) local[bin] = 0;
    __syncthreads();
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
        atomicAdd(&local[keys[i]], 1u);
    __syncthreads();
    for (unsigned int bin = threadIdx.x; bin < kBins; bin += blockDim.x) atomicAdd(&counts[bin], local[bin]);
}

__global__ void add_weights(const std::uint32_t* keys, const float* weights, float* sums, std::size_t count) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
        atomicAdd(&sums[keys[i]], weights[i]);
}

template <typename T>
double largest_error(const std::vector<T>& seen, const std::vector<double>& expected) {
    double largest = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
        const double error = std::fabs(static_cast<double>(seen[i]) - expected[i]);
        if (!(error <= largest)) largest = error;
    }
    return largest;
}

}  // namespace

std::vector<Result> histogram(double scale) {
    const std::size_t count = scaled(1'000'003, scale);
    Random random(5);
    std::vector<std::uint32_t> keys(count);
    std::vector<float> weights(count);
    std::vector<double> expected_counts(kBins), expected_sums(kBins);
    for (std::size_t i = 0; i < count; ++i) {
        keys[i] = random.below(kBins);
        // Multiples of 2^-10 below 1: a bin's sum stays below 2^13, so fp32 holds every partial sum exactly
        // and the order of the additions cannot matter. One lost update shows.
        weights[i] = static_cast<float>(random.below(1024)) * 0x1p-10f;
        expected_counts[keys[i]] += 1;
        expected_sums[keys[i]] += weights[i];
    }
    const DeviceArray<std::uint32_t> device_keys(keys);
    const DeviceArray<float> device_weights(weights);
    DeviceArray<unsigned int> device_counts(kBins);
    DeviceArray<float> device_sums(kBins);
    const unsigned int grid = blocks_for(count, kBlock * kPerThread);

    Result integers{.kernel = "histogram int32", .size = std::to_string(count)};
    integers.milliseconds = best_time(
        [&] { device_counts.fill(0); },
        [&] { count_keys<<<grid, kBlock>>>(device_keys.get(), device_counts.get(), count); });
    integers.rate = giga_rate(sizeof(std::uint32_t) * static_cast<double>(count), integers.milliseconds);
    integers.unit = "GB/s";
    integers.error = largest_error(device_counts.to_host(), expected_counts);

    Result floats{.kernel = "histogram fp32", .size = std::to_string(count)};
    floats.milliseconds = best_time([&] { device_sums.fill(0); },
                                    [&] {
                                        add_weights<<<grid, kBlock>>>(device_keys.get(), device_weights.get(),
                                                                      device_sums.get(), count);
                                    });
    floats.rate = giga_rate((sizeof(std::uint32_t) + sizeof(float)) * static_cast<double>(count),
                            floats.milliseconds);
    floats.unit = "GB/s";
    floats.error = largest_error(device_sums.to_host(), expected_sums);
    return {integers, floats};
}

}  // namespace smoke
