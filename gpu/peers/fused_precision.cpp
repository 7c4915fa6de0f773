#include "gpu/peers/fused_precision.hpp"

#include <fmt/format.h>

#include "core/attention/fused_roundings.hpp"
#include "gpu/runtime/device_info.hpp"

namespace attest {

Accumulation tensor_core_here() {
  static const bool is_hopper_or_newer = why_no_gpu().empty() && device_info(0).compute_major >= 9;
  return is_hopper_or_newer ? hopper() : ampere();
}

PrecisionPlan fused_precision(const Problem& problem) {
  return fused_precision(problem, tensor_core_here());
}

std::optional<std::string> why_no_such_grid(const Problem& p) {
  constexpr std::int64_t largest = 65535;
  if (p.batch > largest) return fmt::format("batch is {}; allowed: up to {}", p.batch, largest);
  if (p.query_heads > largest)
    return fmt::format("query_heads is {}; allowed: up to {}", p.query_heads, largest);
  return std::nullopt;
}

}  // namespace attest
