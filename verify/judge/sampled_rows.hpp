#pragma once

#include <cstdint>
#include <vector>

#include "core/attention/precision_plan.hpp"
#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"
#include "cpu_reference/answer.hpp"
#include "verify/judge/compare.hpp"

namespace attest {

/// Rows of the forward pass, [batch, query head, query, 0], each drawn by (seed, index); the first
/// two are at the ends of their queries, where masks and tails go wrong. Of a problem with rows.
[[nodiscard]] std::vector<Shape> sampled_rows(const Problem& problem, std::uint64_t seed,
                                              std::int64_t count);

/// Every output with its answer; one that is empty is left out.
[[nodiscard]] IndexedList<Comparison, OutputIndex> compare_each(const Outputs& got,
                                                                const Answer& answer);

/// Comparisons of whole tensors, or of some rows of them.
struct Compared {
  IndexedList<Comparison, OutputIndex> outputs;
  std::int64_t rows = 0;
};

/// Compares O and LSE in these rows, each on its own with the exact answer of a kernel that
/// performs `precision`; an output that is empty is left out. The second row's answer is certified
/// by the oracle: throws std::logic_error where they differ.
[[nodiscard]] Compared compare_rows(const Problem& problem, const Inputs& inputs,
                                    const PrecisionPlan& precision, const Outputs& outputs,
                                    const std::vector<Shape>& rows);

}  // namespace attest
