#pragma once

#include <span>
#include <string_view>

#include "core/attention/operation.hpp"
#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"
#include "verify/judge/framework_answers.hpp"

namespace attest {

/// A kernel's result for a peer to judge.
struct PeerCase {
  const Problem& problem;
  const Plan& plan;
  const Outputs& outputs;
  const FrameworkAnswers& framework;
};

/// Rule by which another project decides whether a kernel of an operation is right.
struct PeerRule {
  std::string_view name;
  std::string_view head;       ///< the name in at most 6 characters, above a column
  std::string_view rule;       ///< on the first output
  std::string_view on_others;  ///< what it says about the others
  std::string_view source;     ///< where it stands
  bool (*accepts)(const PeerCase&);
};

/// Rules about an operation, none if no project has one here. Of the forward pass: FlashAttention
/// 2x, cuDNN 2e-2, xFormers, KernelBench 1e-2, FlashInfer 1e-3; then what tests of decoding ask:
/// FlashAttention-3's cache, vLLM, XQA, FlashMLA; and torchtitan's, of any kernel. Of codes:
/// FlashInfer's two, vLLM, XQA, their references being attention of the numbers that codes stand
/// for, where theirs may be of the original values. Of gradients: FlashAttention 3x and -3 2x,
/// cuDNN, xFormers, PyTorch, Triton's tutorial, torchtitan. NaN is rejected by all of them but two:
/// torch.allclose and assert_close are false for NaN, and FlashAttention compares torch.max, which
/// keeps NaN, with <=, which NaN fails. PyTorch's and torchtitan's let NaN pass where their golden
/// answers are NaN.
[[nodiscard]] std::span<const PeerRule> peer_rules(const Operation& operation);

}  // namespace attest
