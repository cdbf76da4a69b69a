// What was found, for people and as one JSON document.
#pragma once

#include <string>
#include <vector>

#include "device.hpp"
#include "smoke.hpp"

namespace smoke {

// The exit codes; scripts rely on them.
enum class Exit { good = 0, wrong_answer = 1, no_gpu = 2, runtime_error = 3, usage = 64 };

struct Report {
    std::vector<Device> devices;  // those listed, or the one that was used
    std::vector<Result> results;
    double scale = 1;  // the part of the work that was done
    NoGpu error;  // empty where all went well
    Exit exit = Exit::good;
};

std::string as_text(const Report& report);
std::string as_json(const Report& report);

}  // namespace smoke
