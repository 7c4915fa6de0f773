#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "verify/judge/agreement.hpp"

// What the laws of combine_operation share.
namespace attest {

/// True if a weight of the largest part is exactly 1, and O of a single part is that part's.
[[nodiscard]] bool merges_exactly(Run& run);

/// The case with another number of parts, contiguous.
[[nodiscard]] Case with_parts(const Run& run, std::int64_t parts);
/// True if the kernel takes the case with that number of parts.
[[nodiscard]] bool can_have_parts(const Run& run, std::int64_t parts);

/// Inputs whose part i is part parts[i] of `from`, inputs of `problem`, O_p changed by `change`.
[[nodiscard]] Inputs with_selected_parts(Problem problem, const Inputs& from,
                                         const std::vector<std::int64_t>& parts,
                                         const std::function<float(float)>& change);
/// Fills one part of all rows.
void fill_part(const Problem& problem, Inputs& inputs, std::int64_t part, float lse, float o);

/// O is O_p of part 0 in O's format, bit for bit, in the rows where that part weighs something.
[[nodiscard]] Check check_gives_first_part(Run& run, const Case& c, const Inputs& inputs,
                                           const Outputs& got, std::string_view failure);

}  // namespace attest
