#pragma once

#include <cstdint>

#include "core/attention/precision_plan.hpp"
#include "core/attention/problem.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/answer.hpp"
#include "cpu_reference/forward/bound_constants.hpp"

namespace attest {

/// The answer of forward_operation: O and LSE, natural log, by blocks of rows in double, the bound
/// of a kernel that performs `precision`, and the reference's own error. Empty rows: O = 0, LSE =
/// -inf, bounds 0. A NaN or infinity in q or in a visible k makes the row's O and LSE NaN, one in a
/// visible v makes its column of the row NaN; errors and bounds are NaN there. Other rows are
/// untouched. The result does not depend on `threads` (>= 1). Throws InvalidInput if a tensor does
/// not have the problem's shape.
[[nodiscard]] Answer exact_answer(const Problem& problem, const Inputs& inputs,
                                  const PrecisionPlan& precision, int threads = 1);

/// The answer for numbers that codes and scales stand for, otherwise as above. `scales` gives the
/// factors that a kernel multiplies by; its q, k and v are not read.
[[nodiscard]] Answer exact_answer(const Problem& problem, const RealInputs& inputs,
                                  const PrecisionPlan& precision, const Magnitudes& scales,
                                  int threads = 1);

/// Recomputes `rows` rows drawn by (seed, index) with the 113-bit oracle.
[[nodiscard]] Certificate certify_rows(const Problem& problem, const Inputs& inputs,
                                       const Answer& answer, std::uint64_t seed, int rows);
[[nodiscard]] Certificate certify_rows(const Problem& problem, const RealInputs& inputs,
                                       const Answer& answer, std::uint64_t seed, int rows);

}  // namespace attest
