#pragma once

#include "core/attention/precision_plan.hpp"
#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"
#include "cpu_reference/answer.hpp"
#include "cpu_reference/forward/bound_constants.hpp"

namespace attest::reference_f64 {

/// Fills the answer of a problem with score modifications, row by row: keys that a bias of
/// -infinity hides differ from row to row and head to head, so rows share no products. `answer` has
/// its shapes. Otherwise as exact_answer().
void solve_modified(const Problem& problem, const Inputs& inputs, const PrecisionPlan& precision,
                    const Magnitudes& magnitudes, int threads, Answer& answer);

}  // namespace attest::reference_f64
