#include "device.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "smoke.hpp"

#ifndef GFX_SMOKE_TARGETS
#error "GFX_SMOKE_TARGETS says for which GPUs this is compiled, separated by semicolons"
#endif

namespace smoke {
namespace {

std::string join(const std::vector<std::string>& words, const char* between) {
    std::string joined;
    for (const auto& word : words) joined += (joined.empty() ? "" : between) + word;
    return joined;
}

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// 110501 -> gfx1151, 90010 -> gfx90a: two decimal digits each for minor and stepping, which the name prints in hex.
std::string target_of_version(unsigned long version) {
    char name[32];
    std::snprintf(name, sizeof name, "gfx%lu%lx%lx", version / 10000, version / 100 % 100, version % 100);
    return name;
}

// The library of an emulator that this process has mapped: what it shows is no GPU, whatever it is called.
std::string mapped_emulator() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const auto path = line.find('/');
        if (path != std::string::npos && line.find("/librocjitsu", path) != std::string::npos) return line.substr(path);
    }
    return "";
}

// GPUs that the kernel's compute driver reports; CPUs are nodes with version 0.
std::vector<std::string> kernel_targets() {
    const std::string root = "/sys/class/kfd/kfd/topology/nodes";
    std::vector<std::string> targets;
    DIR* folder = opendir(root.c_str());
    if (!folder) return targets;
    while (const dirent* entry = readdir(folder)) {
        std::ifstream file(root + "/" + entry->d_name + "/properties");
        std::string key;
        unsigned long value = 0;
        while (file >> key >> value)
            if (key == "gfx_target_version" && value != 0) targets.push_back(target_of_version(value));
    }
    closedir(folder);
    std::sort(targets.begin(), targets.end());
    return targets;
}

// The first thing on the way from the kernel to the runtime that is not as it should be.
NoGpu explain_no_device(hipError_t status) {
    NoGpu why{std::string("the HIP runtime sees no GPU (") + hipGetErrorName(status) + ")", "", ""};
    if (access("/dev/kfd", F_OK) != 0) {
        why.cause = "there is no /dev/kfd: the amdgpu driver is not loaded, no AMD GPU is in this machine, or the "
                    "container was started without it";
        why.next = "modprobe amdgpu and look at dmesg; for a container add --device /dev/kfd --device /dev/dri";
        return why;
    }
    if (access("/dev/kfd", R_OK | W_OK) != 0) {
        why.cause = errno == EACCES ? "this user may not open /dev/kfd" : "/dev/kfd cannot be opened";
        why.next = "join its group (usermod -aG render,video USER, then log in again); for a container add "
                   "--group-add keep-groups (podman) or the number of the host's render group (docker)";
        return why;
    }
    for (const char* name : {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"})
        if (std::getenv(name)) {
            why.cause = std::string(name) + "=" + environment(name) + " may hide every GPU";
            why.next = std::string("unset ") + name + ", then run this again";
            return why;
        }
    const auto targets = kernel_targets();
    if (targets.empty()) {
        why.cause = "the amdgpu driver is loaded but reports no GPU that can compute";
        why.next = "dmesg | grep -i kfd says why: firmware, PCIe atomics or an unsupported GPU are the usual causes";
        return why;
    }
    why.cause = "the kernel reports " + join(targets, ", ") + ", the ROCm runtime does not take it: this release "
                "may have dropped it, or /dev/dri/renderD* cannot be opened";
    why.next = "check the rights on /dev/dri/renderD*, then rocminfo; else use a ROCm release that knows the GPU";
    return why;
}

}  // namespace

std::vector<std::string> compiled_targets() {
    std::vector<std::string> targets;
    std::istringstream text(GFX_SMOKE_TARGETS);
    for (std::string target; std::getline(text, target, ';');)
        if (!target.empty()) targets.push_back(target);
    return targets;
}

bool find_devices(std::vector<Device>& found, NoGpu& why) {
    int count = 0;
    const hipError_t status = hipGetDeviceCount(&count);
    if (status == hipErrorNoDevice || status == hipErrorInsufficientDriver || (status == hipSuccess && count == 0)) {
        why = explain_no_device(status == hipSuccess ? hipErrorNoDevice : status);
        return false;
    }
    check(status, "hipGetDeviceCount");
    for (int index = 0; index < count; ++index) {
        hipDeviceProp_t properties{};
        SMOKE_HIP(hipGetDeviceProperties(&properties, index));
        Device device;
        device.index = index;
        device.name = properties.name;
        device.target = properties.gcnArchName;
        device.wave_size = properties.warpSize;
        device.compute_units = properties.multiProcessorCount;
        device.memory = properties.totalGlobalMem;
        char bus[32];
        std::snprintf(bus, sizeof bus, "%04x:%02x:%02x", static_cast<unsigned>(properties.pciDomainID),
                      static_cast<unsigned>(properties.pciBusID), static_cast<unsigned>(properties.pciDeviceID));
        device.bus = bus;
        SMOKE_HIP(hipRuntimeGetVersion(&device.runtime_version));
        SMOKE_HIP(hipDriverGetVersion(&device.driver_version));
        device.target_override = environment("HSA_OVERRIDE_GFX_VERSION");
        device.emulator = mapped_emulator();
        found.push_back(device);
    }
    return true;
}

bool is_missing_code(hipError_t status) {
    return status == hipErrorInvalidDeviceFunction || status == hipErrorNoBinaryForGpu ||
           status == hipErrorInvalidImage || status == hipErrorSharedObjectInitFailed;
}

NoGpu missing_code(const Device& device) {
    const std::string held = join(compiled_targets(), ";");
    const std::string plain = device.target.substr(0, device.target.find(':'));
    return {"no code in this program runs on GPU " + std::to_string(device.index) + ", a " + device.target,
            "it holds code for " + held + (device.target_override.empty()
                                               ? ""
                                               : ", and HSA_OVERRIDE_GFX_VERSION=" + device.target_override +
                                                     " makes the runtime take the GPU for another"),
            "build it with GFX_TARGETS=" + plain};
}

NoGpu no_such_device(int index, std::size_t count) {
    return {"there is no GPU " + std::to_string(index),
            "the HIP runtime sees " + std::to_string(count) + (count == 1 ? " GPU" : " GPUs") + ", numbered from 0",
            "gfx-smoke --list names them"};
}

}  // namespace smoke
