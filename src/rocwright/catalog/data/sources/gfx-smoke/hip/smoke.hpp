// What every kernel's test is made of: errors, device memory, timing, seeded inputs, a result.
#pragma once

#include <hip/hip_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace smoke {

// A HIP call that failed; `code` tells a missing code object from everything else.
struct HipError : std::runtime_error {
    HipError(hipError_t status, const std::string& call)
        : std::runtime_error(call + ": " + hipGetErrorName(status) + " (" + hipGetErrorString(status) + ")"),
          code(status) {}
    hipError_t code;
};

inline void check(hipError_t status, const char* call) {
    if (status != hipSuccess) throw HipError(status, call);
}

#define SMOKE_HIP(call) ::smoke::check((call), #call)

// One kernel compared with the CPU. `error` and `tolerance` are absolute; `rate` is in `unit` per second.
struct Result {
    std::string kernel;
    std::string size;
    double error = 0;
    double tolerance = 0;
    double milliseconds = 0;
    double rate = 0;
    std::string unit{};

    // A NaN compares false, so it fails.
    bool ok() const { return error <= tolerance; }
};

// An array on the GPU, freed with its scope.
template <typename T>
class DeviceArray {
public:
    explicit DeviceArray(std::size_t count) : count_(count) {
        SMOKE_HIP(hipMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)));
    }
    explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) {
        SMOKE_HIP(hipMemcpy(data_, host.data(), host.size() * sizeof(T), hipMemcpyHostToDevice));
    }
    ~DeviceArray() { (void)hipFree(data_); }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;

    T* get() const { return data_; }

    // Every byte set, so that an element that no thread writes cannot look right by chance.
    void fill(int byte) { SMOKE_HIP(hipMemset(data_, byte, count_ * sizeof(T))); }

    std::vector<T> to_host() const {
        std::vector<T> host(count_);
        SMOKE_HIP(hipMemcpy(host.data(), data_, count_ * sizeof(T), hipMemcpyDeviceToHost));
        return host;
    }

private:
    T* data_ = nullptr;
    std::size_t count_;
};

class Event {
public:
    Event() { SMOKE_HIP(hipEventCreate(&event_)); }
    ~Event() { (void)hipEventDestroy(event_); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    void record() { SMOKE_HIP(hipEventRecord(event_, nullptr)); }

    // Milliseconds from this event to `end`, once `end` has happened.
    double until(const Event& end) const {
        SMOKE_HIP(hipEventSynchronize(end.event_));
        float elapsed = 0;
        SMOKE_HIP(hipEventElapsedTime(&elapsed, event_, end.event_));
        return elapsed;
    }

private:
    hipEvent_t event_ = nullptr;
};

// Shortest of `rounds` timed launches after one that warms up, in milliseconds. `prepare` is not timed.
template <typename Prepare, typename Launch>
double best_time(Prepare prepare, Launch launch, int rounds = 5) {
    double best = 0;
    for (int round = 0; round <= rounds; ++round) {
        Event begin, end;
        prepare();
        begin.record();
        launch();
        SMOKE_HIP(hipGetLastError());
        end.record();
        const double elapsed = begin.until(end);
        if (round == 1 || (round > 1 && elapsed < best)) best = elapsed;
    }
    return best;
}

// Billions of `amount` per second, 0 where the clock saw no time pass.
inline double giga_rate(double amount, double milliseconds) {
    return milliseconds > 0 ? amount / milliseconds * 1e-6 : 0;
}

// SplitMix64: the same numbers on every machine, which std:: distributions do not promise.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>((next() >> 32) * limit >> 32); }
    // Uniform in [-1, 1), in steps of 2^-23.
    float unit() { return static_cast<float>(static_cast<std::int32_t>(next() >> 40) - (1 << 23)) * 0x1p-23f; }

private:
    std::uint64_t state_;
};

inline std::vector<float> random_floats(std::size_t count, std::uint64_t seed) {
    Random random(seed);
    std::vector<float> values(count);
    for (float& value : values) value = random.unit();
    return values;
}

// A part of a count, 1 at least. It stays odd, and so no multiple of a tile.
inline std::size_t scaled(std::size_t odd, double scale) {
    return static_cast<std::size_t>(static_cast<double>(odd) * scale) | 1;
}

inline unsigned int blocks_for(std::size_t count, unsigned int block) {
    return static_cast<unsigned int>((count + block - 1) / block);
}

// The tests, in the order in which they run; each throws HipError where the GPU cannot run it. `scale` is the part
// of the work that is done, in (0, 1]: an emulated GPU takes a thousand times as long as a real one.
std::vector<Result> vector_add(double scale);
std::vector<Result> matrix_product(double scale);
std::vector<Result> histogram(double scale);
std::vector<Result> reduction(double scale);

}  // namespace smoke
