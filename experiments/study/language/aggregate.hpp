#pragma once

#include <optional>
#include <vector>

#include "experiments/study/language/evaluate.hpp"

namespace attest {

/// The value of a call that goes over points: median(), slope(), ...; nothing for other functions.
/// Points without a value of what is asked are left out; when none is left the value is missing.
/// Conditions read the middle of intervals. Bounds: as if all points were at their lows, or all at
/// their highs. `tolerance` is for comparisons in the argument of all() and any().
[[nodiscard]] std::optional<Value> aggregate(const Expression& call, const std::vector<Row>& rows,
                                             double tolerance);

}  // namespace attest
