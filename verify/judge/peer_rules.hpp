#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"

namespace attest {
/// What other projects' test suites compare a kernel with, computed as their frameworks do: whole
/// score matrix, no tiles, one rounding for every tensor that a framework would store. Rows without
/// keys are 0 with LSE -inf, as FlashAttention's tests set them.
struct FrameworkAnswers {
  /// Inputs and arithmetic widened, the result cast to the element type. Wider than fp16 and bf16
  /// is fp32; wider than fp32, for which no project has a rule of this kind, is double.
  Tensor<float> ref;
  /// In the element type with the scale folded into K (`reorder_ops`); sums in fp32 as hardware
  /// does, every stored tensor rounded. For fp32: in fp32.
  Tensor<float> pt;
  Tensor<float> lse;  ///< [batch, query_heads, query_len, 1], of `ref`
};
[[nodiscard]] FrameworkAnswers framework_answers(const Problem& problem, const Inputs& inputs);

/// A kernel's result for a peer to judge.
struct PeerCase {
  const Problem& problem;
  const Plan& plan;
  const Outputs& outputs;
  const FrameworkAnswers& framework;
};

/// How another project decides whether an attention kernel is right.
struct PeerRule {
  std::string_view name;
  std::string_view rule;    ///< on O
  std::string_view on_lse;  ///< what it says about LSE
  std::string_view source;  ///< where it stands
  bool (*accepts)(const PeerCase&);
};

class Run;

/// The columns of the kill matrix: rules of other projects, then our three layers.
inline constexpr std::size_t peer_columns = 9;
inline constexpr std::size_t matrix_columns = peer_columns + 3;

/// FlashAttention 2x, cuDNN 2e-2, xFormers, KernelBench 1e-2, FlashInfer 1e-3; then what tests of
/// decoding ask: FlashAttention-3's cache, vLLM, XQA, FlashMLA. NaN is rejected by all of them:
/// torch.allclose and assert_close are false for NaN, and FlashAttention compares torch.max, which
/// keeps NaN, with <=, which NaN fails.
[[nodiscard]] const std::array<PeerRule, peer_columns>& peer_rules();

/// Who judges a case.
enum class Judges {
  laws,      ///< the laws that the task selects
  peers,     ///< the rules of other projects
  all_rules  ///< those and our layers, each whatever the others say
};

/// What every rule says of one case: true is a rejection.
struct Judgement {
  std::array<bool, matrix_columns> rejected{};
  std::vector<std::string> laws{};  ///< of ours that reject it, the first of each layer
};

/// Judges a run by all rules. As in a campaign, every law that reads the base launch is checked,
/// and one drawn from those that launch again; besides, those that match `always`, a glob. `judges`
/// is peers or all_rules. A KernelFault passes through.
[[nodiscard]] Judgement judge_by_rules(Run& run, Judges judges, const std::string& always);

}  // namespace attest
