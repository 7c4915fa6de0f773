#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "verify/property.hpp"

// What laws share that compare one launch with another of the same exact answer.
namespace attest {

/// The two agree within the sum of their bounds, O and LSE.
[[nodiscard]] Check check_agree(const Outputs& got, const Outputs& want, const Answer& of_got,
                                const Answer& of_want, std::string_view failure);

/// One of the entries for which is_eligible(b) holds, drawn by the case's seed and the law's own
/// `stream`; nothing when there is none.
[[nodiscard]] std::optional<std::int64_t> drawn_entry(
    const Run& run, std::uint64_t stream, const std::function<bool(std::int64_t b)>& is_eligible);

/// One entry of a batch as a dense problem of its own.
struct DenseEntry {
  Case the_case;
  Inputs inputs;
};
/// Entry b with `keys` of its keys, ascending, under the case's plan. Mask and softcap stay,
/// layouts become contiguous, lengths and padding are gone.
[[nodiscard]] DenseEntry dense_entry(const Case& c, const Inputs& inputs, std::int64_t b,
                                     const std::vector<std::int64_t>& keys);
/// Launches it and compares with entry b of the base launch.
[[nodiscard]] Check check_dense_entry(Run& run, const DenseEntry& entry, std::int64_t b,
                                      std::string_view failure);

}  // namespace attest
