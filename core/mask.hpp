#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/host_device.hpp"

namespace attest {

/// Which keys a query sees. The two causal alignments differ only when query_len != key_len.
enum class Mask : int {
  none,
  causal_top_left,     ///< query i sees keys 0..i
  causal_bottom_right  ///< the last query sees the last key: query i sees keys 0..i + key_len -
                       ///< query_len
};

/// Number of keys that query i sees; they are always the first ones, [0, count).
ATTEST_HOST_DEVICE constexpr std::int64_t visible_key_count(Mask mask, std::int64_t query_len,
                                                            std::int64_t key_len,
                                                            std::int64_t query) {
  std::int64_t count = key_len;
  if (mask == Mask::causal_top_left) count = query + 1;
  if (mask == Mask::causal_bottom_right) count = query + 1 + key_len - query_len;
  return count < 0 ? 0 : count > key_len ? key_len : count;
}

/// The one definition of visibility. Everything in the repository, kernels included, asks this.
ATTEST_HOST_DEVICE constexpr bool is_visible(Mask mask, std::int64_t query_len,
                                             std::int64_t key_len, std::int64_t query,
                                             std::int64_t key) {
  return key < visible_key_count(mask, query_len, key_len, query);
}

[[nodiscard]] std::string_view name_of(Mask mask);
[[nodiscard]] std::span<const Mask> all_masks();
/// Throws InvalidInput for an unknown name.
[[nodiscard]] Mask mask_from_name(std::string_view name);

}  // namespace attest
