#pragma once

#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"

namespace attest {

using WideOutputs = IndexedList<Tensor<double>, OutputIndex>;

/// Answers with which other projects' test suites compare a kernel, computed as their frameworks
/// do: whole score matrix, no tiles, one rounding for every tensor that a framework would store.
/// Rows without keys are 0 with LSE -inf, as FlashAttention's tests set them. Gradients are those
/// that automatic differentiation makes of this formula, from Q, K, V and dO: the O and LSE that a
/// case gives its kernel do not enter.
struct FrameworkAnswers {
  /// Inputs and arithmetic widened, and the result not yet cast. Wider than fp16 and bf16 is fp32;
  /// wider than fp32, for which no project but PyTorch has a rule of this kind, is double.
  WideOutputs wide;
  Outputs ref;  ///< `wide` cast to the formats of the outputs
  /// Answer in the element type with the scale folded into K (`reorder_ops`); sums in fp32 as
  /// hardware does, every stored tensor rounded. For fp32: in fp32.
  Outputs pt;
};

/// Answers by output of the problem's operation: the forward, the backward or the quantised one,
/// whose numbers are then what codes stand for, rounded to fp32.
[[nodiscard]] FrameworkAnswers framework_answers(const Problem& problem, const Inputs& inputs);

}  // namespace attest
