// A kernel: what it computes, what it takes, and which roundings it performs. Copy this file to
// begin one of your own on the CPU; gpu/kernels/k3_sequence_parallel.cu is the one to copy for
// CUDA.
#include <cmath>
#include <limits>

#include "core/run/registry.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace tutorial_kernel {

/// Two passes over the first `keys` keys that the row sees: the largest score, then weights, their
/// sum and O. Returns LSE. `o` arrives as zeros, and stays so for a row that sees no key.
float attend_first(std::int64_t keys, const AttentionRow& row, std::span<float> o) {
  const std::vector<float> scores = row.scores();
  float m = -std::numeric_limits<float>::infinity();
  for (std::int64_t j = 0; j < keys; ++j) m = std::fmax(m, scores[static_cast<std::size_t>(j)]);
  float l = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    const float weight = std::exp(scores[static_cast<std::size_t>(j)] - m);
    l += weight;
    row.add_value(weight, j, o);
  }
  // Of no keys l is 0, O is 0 and LSE -infinity. Written with l > 0 this would make 0 of a NaN that
  // the row sees, which a law asks for.
  for (float& x : o) x = l == 0 ? 0 : x / l;
  return m + std::log(l);
}

float attend(const AttentionRow& row, const Plan& /*plan*/, std::span<float> o) {
  return attend_first(row.visible, row, o);
}

/// The bug of this chapter: more than 40 keys are one too many.
float attend_40(const AttentionRow& row, const Plan& /*plan*/, std::span<float> o) {
  return attend_first(row.visible > 40 ? row.visible - 1 : row.visible, row, o);
}

/// The bound of every element follows from what is said here, and from nothing else: the roundings
/// of row kernels, and that nothing is rescaled, as the largest score is known before.
PrecisionPlan precision(const Problem& problem, const Plan& /*plan*/) {
  PrecisionPlan plan = row_precision(problem);
  plan.rescale = Rescale::none;
  return plan;
}

KernelInfo described(std::string name, std::string summary) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .source = "examples/tutorial",
          .precision = precision,
          .plans = no_plan_choice};
}

const KernelRegistration right{
    row_kernel(described("tutorial_two_pass", "maximum, then weights and O"), attend)};
const KernelRegistration wrong{row_kernel(
    described("tutorial_forgets", "the same, and past 40 keys it forgets one"), attend_40)};

}  // namespace tutorial_kernel
}  // namespace attest
