#include "gpu/peers/fused_backward_roundings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "gpu/peers/fused_precision.hpp"

namespace attest {
namespace {

constexpr std::int64_t largest_head_dim = 256;
constexpr std::int64_t largest_tile = 256;
constexpr std::int64_t terms_of_a_step = 16;

std::int64_t rounded_up(std::int64_t count, std::int64_t to) {
  return std::max<std::int64_t>(1, (count + to - 1) / to) * to;
}

}  // namespace

BackwardRoundings fused_backward_roundings(const Problem& p) {
  // Chains of all, and as many parts as there are steps: more than any order costs.
  const std::int64_t keys = rounded_up(p.key_len, largest_tile);
  const std::int64_t group = p.query_heads / p.kv_heads;
  const std::int64_t rows = rounded_up(p.query_len, largest_tile);
  return {.score = tensor_core_here(),
          .product = tensor_core_here(),
          .sums = tensor_core_here(),
          .exp = ex2_approx(),
          .lse = LseForm::log2,
          .delta_chain = p.output_dim(),
          .weight_format = p.element_type,
          .dscore_format = p.element_type,
          .dq_chain = keys,
          .dq_parts = keys / terms_of_a_step,
          .kv_chain = rows,
          .kv_tiles = rows / terms_of_a_step,
          .kv_parts = group * (rows / terms_of_a_step),
          .kv_part_format = group > 1 ? p.element_type : ElementType::fp32,
          .output = p.element_type,
          .flushes_subnormals = true};
}

BackwardRoundings cudnn_backward_roundings(const Problem& p) {
  BackwardRoundings how = fused_backward_roundings(p);
  how.scales_dscore = true;
  return how;
}

std::optional<std::string> why_no_fused_backward(const Problem& p) {
  if (p.head_dim % 8 != 0 || p.head_dim > largest_head_dim) {
    return fmt::format("head_dim is {}; allowed: multiples of 8 up to {}", p.head_dim,
                       largest_head_dim);
  }
  if (p.key_len == 0) return "key_len is 0; allowed: at least 1";
  if (auto reason = why_no_such_grid(p)) return reason;
  if (p.mask == Mask::causal_bottom_right && p.query_len > p.key_len) {
    return fmt::format("query_len is {}; allowed with a bottom-right mask: at most key_len, {}",
                       p.query_len, p.key_len);
  }
  if (!(p.scale >= std::numeric_limits<float>::min())) {
    return fmt::format("scale is {}; allowed: positive normal numbers (gpu/peers/README.md)",
                       p.scale);
  }
  return std::nullopt;
}

std::optional<std::string> why_no_cudnn_backward(const Problem& p) {
  if (p.query_len == 1 && p.key_len == 1) {
    return "query_len and key_len are 1; the cuDNN frontend refuses that";
  }
  return why_no_fused_backward(p);
}

}  // namespace attest
