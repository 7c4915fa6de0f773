#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/element_type.hpp"
#include "core/host_device.hpp"
#include "core/mask.hpp"

namespace attest {

/// What the answer is. O = softmax(scale * Q K^T over the visible keys) V and LSE = ln sum
/// exp(scale * q.k). Q [batch, query_heads, query_len, head_dim], K and V [batch, kv_heads,
/// key_len, head_dim], O like Q, LSE [batch, query_heads, query_len] in fp32, natural log.
struct Problem {
  std::int64_t batch = 1;
  std::int64_t query_heads = 1;
  std::int64_t kv_heads = 1;  ///< divides query_heads
  std::int64_t query_len = 1;
  std::int64_t key_len = 1;  ///< 0 is allowed: every row is then empty
  std::int64_t head_dim = 64;
  Mask mask = Mask::none;
  ElementType element_type = ElementType::fp32;
  float scale = 0.125F;  ///< exactly this fp32 value multiplies the dot products

  friend bool operator==(const Problem&, const Problem&) = default;

  ATTEST_HOST_DEVICE constexpr std::int64_t kv_head_of(std::int64_t query_head) const {
    return query_head / (query_heads / kv_heads);
  }
  ATTEST_HOST_DEVICE constexpr std::int64_t visible_keys(std::int64_t query) const {
    return visible_key_count(mask, query_len, key_len, query);
  }
  ATTEST_HOST_DEVICE constexpr std::int64_t rows() const { return batch * query_heads * query_len; }
};

using Shape = std::array<std::int64_t, 4>;
[[nodiscard]] Shape query_shape(const Problem& problem);  ///< of Q and O
[[nodiscard]] Shape key_shape(const Problem& problem);    ///< of K and V

/// fp32 nearest to 1 / sqrt(head_dim).
[[nodiscard]] float default_scale(std::int64_t head_dim);

/// 4 * B * H * D per visible (query, key) pair: two products of 2 D each. Softmax is not counted.
[[nodiscard]] double forward_flops(const Problem& problem);

/// Short text, e.g. `b1 h4/2 q33 k65 d64 causal_top_left fp32`; the scale is added only when it is
/// not the default.
[[nodiscard]] std::string to_string(const Problem& problem);

/// Inverse. Parts stand in any order, separated by spaces or commas; those left out keep the
/// defaults of Problem, but kv_heads and key_len become query_heads and query_len, and `h8` means
/// `h8/8`. `n512` means `q512 k512`. Throws InvalidInput that names the faulty part and what is
/// allowed.
[[nodiscard]] Problem problem_from_string(std::string_view text);

/// Throws InvalidInput naming the field, the value and the allowed range.
void validate(const Problem& problem);

}  // namespace attest
