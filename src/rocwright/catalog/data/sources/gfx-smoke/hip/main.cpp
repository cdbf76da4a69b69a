// gfx-smoke: does code compiled for this GPU run on it, and is what it computes right?
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include "report.hpp"

namespace {

using namespace smoke;

constexpr const char* kUsage =
    "usage: gfx-smoke [--device N] [--scale PART] [--list] [--targets] [--json]\n"
    "\n"
    "Runs a few small kernels on a GPU and compares what they compute with the CPU.\n"
    "\n"
    "  --device N   the GPU to use, counted from 0 (default 0)\n"
    "  --scale PART do this part of the work, above 0 and at most 1: for a GPU that is emulated (default 1)\n"
    "  --list       name the GPUs and stop\n"
    "  --targets    name the GPU targets that this program holds code for and stop\n"
    "  --json       one JSON document instead of a table\n"
    "\n"
    "exit status: 0 all right, 1 a kernel is wrong, 2 no usable GPU, 3 the runtime failed, 64 wrong usage\n";

struct Options {
    int device = 0;
    double scale = 1;
    bool list = false;
    bool targets = false;
    bool json = false;
    bool help = false;
};

// False where the arguments make no sense.
bool parse(int count, char** words, Options& options) {
    for (int i = 1; i < count; ++i) {
        const std::string_view word = words[i];
        if (word == "--list") {
            options.list = true;
        } else if (word == "--targets") {
            options.targets = true;
        } else if (word == "--json") {
            options.json = true;
        } else if (word == "--help" || word == "-h") {
            options.help = true;
        } else if (word == "--device" && i + 1 < count) {
            char* end = nullptr;
            const long number = std::strtol(words[++i], &end, 10);
            if (*words[i] == '\0' || *end != '\0' || number < 0 || number > 1023) return false;
            options.device = static_cast<int>(number);
        } else if (word == "--scale" && i + 1 < count) {
            char* end = nullptr;
            options.scale = std::strtod(words[++i], &end);
            // A NaN compares false, so it is refused.
            if (*words[i] == '\0' || *end != '\0' || !(options.scale > 0 && options.scale <= 1)) return false;
        } else {
            return false;
        }
    }
    return true;
}

void run_kernels(Report& report) {
    for (const auto& test : {vector_add, matrix_product, histogram, reduction})
        for (const auto& result : test(report.scale)) report.results.push_back(result);
    for (const auto& result : report.results)
        if (!result.ok()) {
            report.exit = Exit::wrong_answer;
            report.error = {"this GPU computes wrong answers with this code",
                            "code for another target, a driver or firmware fault, or failing hardware",
                            "check the target above, dmesg, and the same program on another ROCm release"};
        }
}

Report examine(const Options& options) {
    Report report;
    report.scale = options.scale;
    try {
        std::vector<Device> devices;
        if (!find_devices(devices, report.error)) {
            report.exit = Exit::no_gpu;
            return report;
        }
        if (options.list) {
            report.devices = devices;
            return report;
        }
        if (static_cast<std::size_t>(options.device) >= devices.size()) {
            report.error = no_such_device(options.device, devices.size());
            report.exit = Exit::no_gpu;
            return report;
        }
        report.devices = {devices[options.device]};
        SMOKE_HIP(hipSetDevice(options.device));
        run_kernels(report);
    } catch (const HipError& error) {
        if (is_missing_code(error.code) && !report.devices.empty()) {
            report.error = missing_code(report.devices.front());
            report.exit = Exit::no_gpu;
        } else {
            report.error = {error.what(), "the GPU's runtime or driver failed", "dmesg | grep -iE 'amdgpu|kfd'"};
            report.exit = Exit::runtime_error;
        }
    } catch (const std::exception& error) {
        report.error = {error.what(), "", ""};
        report.exit = Exit::runtime_error;
    }
    return report;
}

}  // namespace

int main(int count, char** words) {
    Options options;
    if (!parse(count, words, options)) {
        std::fputs(kUsage, stderr);
        return static_cast<int>(Exit::usage);
    }
    if (options.help) {
        std::fputs(kUsage, stdout);
        return 0;
    }
    if (options.targets) {
        for (const auto& target : compiled_targets()) std::puts(target.c_str());
        return 0;
    }
    const Report report = examine(options);
    if (options.json)
        std::fputs(as_json(report).c_str(), stdout);
    else
        std::fputs(as_text(report).c_str(), report.devices.empty() ? stderr : stdout);
    return static_cast<int>(report.exit);
}
