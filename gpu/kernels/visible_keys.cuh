#pragma once

#include <cstdint>

#include "core/attention/mask.hpp"
#include "core/attention/problem.hpp"
#include "core/base/host_device.hpp"

namespace attest {

// Which keys a query sees, in 32 bits and without asking for the mask again at every row: query i
// sees keys [i + begin, i + reach) of those that there are.

inline constexpr int beyond_all_keys = 1 << 30;  ///< more than any length

/// The key of query 0 on the diagonal of a causal mask or of a window.
ATTEST_HOST_DEVICE inline int diagonal_of(const Problem& problem, int queries, int keys) {
  const bool is_bottom_right =
      problem.mask == Mask::causal_bottom_right || problem.mask == Mask::window_bottom_right;
  return is_bottom_right ? keys - queries : 0;
}

/// Reach of a full or causal mask.
ATTEST_HOST_DEVICE inline int causal_reach(const Problem& problem, int queries, int keys) {
  return problem.mask == Mask::none ? beyond_all_keys : diagonal_of(problem, queries, keys) + 1;
}

/// Keys that queries see by `reach` and `keys` of the derived class: query i sees keys below
/// min(keys, i + reach). It is a base class, since a free function changes the order of
/// instructions.
template <typename Derived>
struct CausalKeys {
  /// One past the last key that `query` sees.
  ATTEST_HOST_DEVICE int past_key(int query) const {
    const auto& p = static_cast<const Derived&>(*this);
    const int past = query + p.reach < p.keys ? query + p.reach : p.keys;
    return past > 0 ? past : 0;
  }
};

/// visible_range() in 32 bits: query i sees keys [max(0, i + begin), min(keys, i + reach)).
struct KeyReach {
  int begin = 0, reach = 0, keys = 0;

  KeyReach() = default;
  __device__ KeyReach(const Problem& problem, int queries, int keys_)
      : begin(-beyond_all_keys), reach(beyond_all_keys), keys(keys_) {
    if (problem.mask == Mask::none) return;
    const int diagonal = diagonal_of(problem, queries, keys);
    if (!is_window(problem.mask)) {
      reach = diagonal + 1;
      return;
    }
    if (problem.window.left >= 0) begin = diagonal - clipped(problem.window.left);
    if (problem.window.right >= 0) reach = diagonal + clipped(problem.window.right) + 1;
  }
  /// One past the last key that `query` sees.
  __device__ int past_key(int query) const { return max(0, min(query + reach, keys)); }
  /// The first key that `query` sees.
  __device__ int first_key(int query) const { return max(0, min(query + begin, keys)); }

 private:
  static __device__ int clipped(std::int64_t side) {
    return side < beyond_all_keys ? static_cast<int>(side) : beyond_all_keys;
  }
};

}  // namespace attest
