#include "gpu/peers/fused_backward_roundings.hpp"

#include <fmt/format.h>

#include <limits>

#include "core/attention/fused_roundings.hpp"
#include "gpu/peers/fused_precision.hpp"

namespace attest {
namespace {

constexpr std::int64_t largest_head_dim = 256;

}  // namespace

BackwardRoundings fused_backward_roundings(const Problem& problem) {
  return fused_backward_roundings(problem, tensor_core_here());
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
