#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/host_device.hpp"

namespace attest {

/// Visibility of keys by position. The alignments differ only when query_len != key_len: the key on
/// the diagonal of query i is i (top left) or i + key_len - query_len (bottom right: the last
/// query's is the last key).
enum class Mask : int {
  none,
  causal_top_left,  ///< the keys up to the diagonal
  causal_bottom_right,
  window_top_left,  ///< the keys of a Window around the diagonal
  window_bottom_right
};

/// Sliding window: keys from diagonal - left to diagonal + right, both seen. A negative side has no
/// end.
struct Window {
  std::int64_t left = -1;
  std::int64_t right = -1;

  friend bool operator==(const Window&, const Window&) = default;
};

/// Keys [begin, end).
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  friend bool operator==(const KeyRange&, const KeyRange&) = default;

  ATTEST_HOST_DEVICE constexpr std::int64_t size() const { return end - begin; }
  ATTEST_HOST_DEVICE constexpr bool holds(std::int64_t key) const {
    return begin <= key && key < end;
  }
};

ATTEST_HOST_DEVICE constexpr bool is_window(Mask mask) {
  return mask == Mask::window_top_left || mask == Mask::window_bottom_right;
}

/// Key on the diagonal of a query, which may lie before the first or behind the last one.
ATTEST_HOST_DEVICE constexpr std::int64_t diagonal_key(Mask mask, std::int64_t query_len,
                                                       std::int64_t key_len, std::int64_t query) {
  const bool is_bottom_right =
      mask == Mask::causal_bottom_right || mask == Mask::window_bottom_right;
  return is_bottom_right ? query + key_len - query_len : query;
}

/// Distance of a key from a query's diagonal, in keys, negative before it: what ALiBi counts. Where
/// there is no mask the last query's diagonal is the last key, as in FlashAttention.
ATTEST_HOST_DEVICE constexpr std::int64_t key_distance(Mask mask, std::int64_t query_len,
                                                       std::int64_t key_len, std::int64_t query,
                                                       std::int64_t key) {
  const Mask aligned = mask == Mask::none ? Mask::causal_bottom_right : mask;
  return key - diagonal_key(aligned, query_len, key_len, query);
}

/// The keys that a query sees by its position: the definition that answers, bounds and laws ask.
/// Kernels may count in their own way, and are held to this one. Neither end of the range falls as
/// `query` grows. An empty range has begin == end.
ATTEST_HOST_DEVICE constexpr KeyRange visible_range(Mask mask, Window window,
                                                    std::int64_t query_len, std::int64_t key_len,
                                                    std::int64_t query) {
  const std::int64_t diagonal = diagonal_key(mask, query_len, key_len, query);
  const std::int64_t left = is_window(mask) ? window.left : -1;
  const std::int64_t right = mask == Mask::none ? -1 : is_window(mask) ? window.right : 0;
  std::int64_t end = right < 0 ? key_len : diagonal + right + 1;
  end = end < 0 ? 0 : end > key_len ? key_len : end;
  std::int64_t begin = left < 0 || diagonal < left ? 0 : diagonal - left;
  begin = begin > end ? end : begin;
  return {begin, end};
}

/// Number of keys that query i sees under a mask that hides none before them: the first ones.
ATTEST_HOST_DEVICE constexpr std::int64_t visible_key_count(Mask mask, std::int64_t query_len,
                                                            std::int64_t key_len,
                                                            std::int64_t query) {
  return visible_range(mask, {}, query_len, key_len, query).end;
}

[[nodiscard]] std::string_view name_of(Mask mask);
[[nodiscard]] std::span<const Mask> all_masks();
/// The masks without windows: a row sees the first keys, none or more.
[[nodiscard]] std::span<const Mask> prefix_masks();
/// Mask of a name. Throws InvalidInput for an unknown name.
[[nodiscard]] Mask mask_from_name(std::string_view name);

}  // namespace attest
