// What each program of the self-test is made of: inputs on the device, results back, compared with the CPU.
//
// It prints one line, `TARGET COUNT WRONG`, and the first wrong value where there is one. Exit status: 0 none is wrong,
// 1 some are, 2 the runtime failed.
#pragma once

#include <hip/hip_runtime.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define DEMAND(call)                                                                   \
    do {                                                                               \
        const hipError_t status = (call);                                              \
        if (status != hipSuccess) {                                                    \
            std::printf("%s: %s\n", #call, hipGetErrorName(status));                   \
            std::exit(2);                                                              \
        }                                                                              \
    } while (0)

template <typename T>
T* on_device(const std::vector<T>& host) {
    T* device = nullptr;
    DEMAND(hipMalloc(reinterpret_cast<void**>(&device), host.size() * sizeof(T)));
    DEMAND(hipMemcpy(device, host.data(), host.size() * sizeof(T), hipMemcpyHostToDevice));
    return device;
}

// Room for results; each byte is set, so that a value that nobody writes is not right by chance.
template <typename T>
T* room(std::size_t count) {
    std::vector<T> host(count);
    std::memset(static_cast<void*>(host.data()), 0xa5, count * sizeof(T));
    return on_device(host);
}

// Bit for bit: the programs compute only what both sides round alike.
template <typename T>
int compare(const T* device, const std::vector<T>& expected) {
    std::vector<T> seen(expected.size());
    DEMAND(hipGetLastError());
    DEMAND(hipMemcpy(seen.data(), device, seen.size() * sizeof(T), hipMemcpyDeviceToHost));
    hipDeviceProp_t properties{};
    DEMAND(hipGetDeviceProperties(&properties, 0));
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = seen.size(); i-- > 0;)
        if (std::memcmp(&seen[i], &expected[i], sizeof(T)) != 0) ++wrong, first = i;
    std::printf("%s %zu %zu", properties.gcnArchName, seen.size(), wrong);
    if (wrong != 0)
        std::printf(" at %zu: %.17g, the CPU has %.17g", first, static_cast<double>(seen[first]),
                    static_cast<double>(expected[first]));
    std::printf("\n");
    return wrong == 0 ? 0 : 1;
}
