#include "core/records/provenance.hpp"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <chrono>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "build_info.inc"

namespace attest {
namespace {

std::string cpu_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

}  // namespace

Provenance current_provenance(std::string device) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return {.commit = ATTEST_COMMIT,
          .dirty = ATTEST_DIRTY,
          .compiler = ATTEST_COMPILER,
          .cuda_compiler = ATTEST_CUDA_COMPILER,
          .build_type = ATTEST_BUILD_TYPE,
          .sanitizers = ATTEST_SANITIZERS,
          .host = fmt::format("{}, {} threads", cpu_model(), std::thread::hardware_concurrency()),
          .device = std::move(device),
          .date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                              fmt::gmtime(std::chrono::system_clock::to_time_t(now)))};
}

}  // namespace attest
