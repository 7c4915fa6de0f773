#include "gpu/peers/fused_precision.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gpu/runtime/device_info.hpp"

namespace attest {

Accumulation tensor_core_here() {
  static const bool is_hopper_or_newer = why_no_gpu().empty() && device_info(0).compute_major >= 9;
  return is_hopper_or_newer ? hopper() : ampere();
}

PrecisionPlan fused_precision(const Problem& problem) {
  ExpMethod exp = ex2_approx();
  exp.argument_error += 0x1p-24;  // a rescale by 2^fl(fl(m - m') c) rounds twice
  const std::int64_t parts = std::max<std::int64_t>(1, (problem.key_len + 15) / 16);
  return {.score = tensor_core_here(),
          .value = tensor_core_here(),
          .scale_after_dot = false,
          .exp = exp,
          .weight_format = problem.element_type,
          .rescale = Rescale::deferred,
          .blocks = parts,
          .splits = parts,
          .normaliser_chain = problem.key_len,
          .division_error = 0x1p-22,
          .log_error = 0x1p-20,
          .lse = LseForm::log2,
          .merge = Merge::lse_pairs};
}

std::optional<std::string> why_no_such_grid(const Problem& p) {
  constexpr std::int64_t largest = 65535;
  if (p.batch > largest) return fmt::format("batch is {}; allowed: up to {}", p.batch, largest);
  if (p.query_heads > largest)
    return fmt::format("query_heads is {}; allowed: up to {}", p.query_heads, largest);
  return std::nullopt;
}

}  // namespace attest
