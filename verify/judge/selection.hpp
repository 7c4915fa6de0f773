#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "core/attention/tensor_list.hpp"
#include "core/operations/select.hpp"

// What laws of select_operation share.
namespace attest {

/// The keys of one list as they were returned, up to its count or to its end.
[[nodiscard]] inline std::span<const float> returned_keys(const Problem& problem,
                                                          const Outputs& outputs, std::int64_t b,
                                                          std::int64_t n) {
  const float count = outputs[selecting::counts].at(b, 0, n, 0);
  const auto room = static_cast<float>(problem.top_k);
  return outputs[selecting::keys].row(b, 0, n).first(
      static_cast<std::size_t>(count > 0 ? std::min(count, room) : 0.0F));
}

/// Place of a returned number among the keys that its query sees, ascending; nothing: it is none of
/// them.
[[nodiscard]] inline std::optional<std::size_t> place_among(const std::vector<std::int64_t>& keys,
                                                            float number) {
  const auto key = static_cast<std::int64_t>(number);
  const auto at = std::ranges::lower_bound(keys, key);
  if (at == keys.end() || *at != key) return std::nullopt;
  return static_cast<std::size_t>(at - keys.begin());
}

}  // namespace attest
