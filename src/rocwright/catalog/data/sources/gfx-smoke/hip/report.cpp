#include "report.hpp"

#include <cmath>
#include <cstdarg>
#include <cstdio>

#ifndef GFX_SMOKE_VERSION
#error "GFX_SMOKE_VERSION is the version of the package"
#endif

namespace smoke {
namespace {

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
    char text[512];
    va_list values;
    va_start(values, pattern);
    std::vsnprintf(text, sizeof text, pattern, values);
    va_end(values);
    return text;
}

// HIP counts 6.4.43484 as 60443484.
std::string version(int number) {
    return format("%d.%d.%d", number / 10'000'000, number / 100'000 % 100, number % 100'000);
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            (out += '\\') += c;
        else if (static_cast<unsigned char>(c) < 0x20)
            out += format("\\u%04x", static_cast<unsigned>(c));
        else
            out += c;
    }
    return out + '"';
}

// JSON has no NaN and no infinity.
std::string number(double value) { return std::isfinite(value) ? format("%.9g", value) : "null"; }

// `[item, item]`, each item written by `write`.
template <typename T, typename Write>
std::string array(const std::vector<T>& items, Write write) {
    std::string out = "[";
    for (const auto& item : items) out += (out.size() > 1 ? ", " : "") + write(item);
    return out + "]";
}

std::string json_of(const Device& device) {
    return "{\"index\": " + std::to_string(device.index) + ", \"name\": " + quoted(device.name) +
           ", \"target\": " + quoted(device.target) + ", \"wave_size\": " + std::to_string(device.wave_size) +
           ", \"compute_units\": " + std::to_string(device.compute_units) +
           ", \"memory\": " + std::to_string(device.memory) + ", \"bus\": " + quoted(device.bus) +
           ", \"runtime\": " + quoted(version(device.runtime_version)) +
           ", \"driver\": " + quoted(version(device.driver_version)) +
           ", \"target_override\": " + quoted(device.target_override) +
           ", \"emulator\": " + quoted(device.emulator) + "}";
}

std::string json_of(const Result& result) {
    return "{\"kernel\": " + quoted(result.kernel) + ", \"size\": " + quoted(result.size) +
           ", \"error\": " + number(result.error) + ", \"tolerance\": " + number(result.tolerance) +
           ", \"milliseconds\": " + number(result.milliseconds) + ", \"rate\": " + number(result.rate) +
           ", \"unit\": " + quoted(result.unit) + ", \"ok\": " + (result.ok() ? "true" : "false") + "}";
}

std::string text_of(const Device& device) {
    std::string out = format("GPU %d  %s  %s\n", device.index, device.name.c_str(), device.target.c_str());
    out += format("       wave %d · %d compute units · %.1f GiB · %s\n", device.wave_size, device.compute_units,
                  static_cast<double>(device.memory) / (1 << 30), device.bus.c_str());
    out += format("       HIP runtime %s · driver %s\n", version(device.runtime_version).c_str(),
                  version(device.driver_version).c_str());
    if (!device.target_override.empty())
        out += format("       HSA_OVERRIDE_GFX_VERSION=%s is set: the target above may not be the GPU's own\n",
                      device.target_override.c_str());
    if (!device.emulator.empty())
        out += format("       emulated by %s: no GPU ran this, and its times mean nothing\n", device.emulator.c_str());
    return out;
}

std::string text_of(const Result& result) {
    const std::string rate = result.unit.empty() ? "" : format("%.1f %s", result.rate, result.unit.c_str());
    return format("%-20s %14s %11.3g %11.3g %10.3f %16s  %s\n", result.kernel.c_str(), result.size.c_str(),
                  result.error, result.tolerance, result.milliseconds, rate.c_str(),
                  result.ok() ? "ok" : "FAILED");
}

}  // namespace

std::string as_text(const Report& report) {
    std::string out;
    for (const auto& device : report.devices) out += text_of(device);
    if (!report.results.empty()) {
        if (report.scale != 1) out += format("       %g of the work: sizes are not those of other reports\n", report.scale);
        out += format("\n%-20s %14s %11s %11s %10s %16s\n", "kernel", "size", "max error", "tolerance", "time ms",
                      "rate");
        for (const auto& result : report.results) out += text_of(result);
    }
    if (!report.error.what.empty()) {
        out += "gfx-smoke: " + report.error.what + "\n";
        if (!report.error.cause.empty()) out += "  cause   " + report.error.cause + "\n";
        if (!report.error.next.empty()) out += "  next    " + report.error.next + "\n";
    }
    return out;
}

std::string as_json(const Report& report) {
    std::string out = "{\"program\": \"gfx-smoke\", \"version\": " + quoted(GFX_SMOKE_VERSION) +
                      ", \"targets\": " + array(compiled_targets(), quoted) +
                      ",\n \"scale\": " + number(report.scale) +
                      ",\n \"devices\": " + array(report.devices, [](const Device& d) { return json_of(d); }) +
                      ",\n \"results\": " + array(report.results, [](const Result& r) { return json_of(r); });
    out += ",\n \"error\": ";
    if (report.error.what.empty())
        out += "null";
    else
        out += "{\"what\": " + quoted(report.error.what) + ", \"cause\": " + quoted(report.error.cause) +
               ", \"next\": " + quoted(report.error.next) + "}";
    return out + ",\n \"exit\": " + std::to_string(static_cast<int>(report.exit)) + "}\n";
}

}  // namespace smoke
