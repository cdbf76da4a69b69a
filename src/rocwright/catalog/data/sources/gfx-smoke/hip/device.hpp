// Which GPUs there are, which this program holds code for, and why there may be none.
#pragma once

#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <string>
#include <vector>

namespace smoke {

struct Device {
    int index = 0;
    std::string name;
    std::string target;  // as the runtime says it: gfx906:sramecc+:xnack-
    int wave_size = 0;
    int compute_units = 0;
    std::size_t memory = 0;  // bytes
    std::string bus;
    int runtime_version = 0;
    int driver_version = 0;
    std::string target_override;  // HSA_OVERRIDE_GFX_VERSION, where it is set
    std::string emulator;         // the library in this process that stands in for a driver, or empty
};

// Why nothing can be measured here, told so that one can act on it.
struct NoGpu {
    std::string what;
    std::string cause;
    std::string next;
};

// The GPU targets this program was compiled for.
std::vector<std::string> compiled_targets();

// Fills `found`; where there is none to fill it with, `why` says so and the answer is false.
// Throws HipError for failures that are no lack of a GPU.
bool find_devices(std::vector<Device>& found, NoGpu& why);

// True where `status` means that no code in this program fits the GPU.
bool is_missing_code(hipError_t status);

NoGpu missing_code(const Device& device);
NoGpu no_such_device(int index, std::size_t count);

}  // namespace smoke
