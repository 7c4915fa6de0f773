#include "verify/judge/peer_rules.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/attention/element_type.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"

namespace attest {
namespace {

/// The largest of `count` numbers that are not negative, by index; a NaN stays, as torch.max keeps
/// it.
template <typename Number>
double largest_of(std::size_t count, const Number& number) {
  double largest = 0;
  for (std::size_t i = 0; i < count && !std::isnan(largest); ++i) {
    const double here = number(i);
    if (here > largest || std::isnan(here)) largest = here;
  }
  return largest;
}

/// max |a - b| as torch computes it: the difference is a tensor of the element type.
double max_difference(const Tensor<float>& a, const Tensor<float>& b, ElementType type) {
  return largest_of(a.values().size(), [&](std::size_t i) {
    return std::abs(round_to(type, static_cast<double>(a.values()[i]) - b.values()[i]));
  });
}

/// max |a - b| in the wider type.
template <typename Value>
double max_wide_difference(const Tensor<Value>& a, const Tensor<double>& b) {
  return largest_of(a.values().size(), [&](std::size_t i) {
    return std::abs(static_cast<double>(a.values()[i]) - b.values()[i]);
  });
}

/// torch.allclose(got, want): |got - want| <= atol + rtol |want| everywhere; equal infinities are
/// close, NaN is not.
template <typename Value>
bool all_close(const Tensor<float>& got, const Tensor<Value>& want, double atol, double rtol) {
  for (std::size_t i = 0; i < got.values().size(); ++i) {
    const double a = got.values()[i];
    const double b = static_cast<double>(want.values()[i]);
    if (a == b) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) return false;
    if (!(std::abs(a - b) <= atol + rtol * std::abs(b))) return false;
  }
  return true;
}

bool flash_attention(const PeerCase& c) {
  const ElementType type = c.problem.element_type;
  double allowance = 0;
  if (c.problem.mask != Mask::none) allowance = 1e-5;
  if (c.plan.key_splits > 1) allowance = 2e-4;
  const double error = max_difference(c.outputs[forward::o], c.framework.ref[forward::o], type);
  return error <=
         2 * max_difference(c.framework.pt[forward::o], c.framework.ref[forward::o], type) +
             allowance;
}

bool cudnn(const PeerCase& c) {
  return all_close(c.outputs[forward::o], c.framework.ref[forward::o], 2e-2, 2e-2) &&
         all_close(c.outputs[forward::lse], c.framework.ref[forward::lse], 2e-2, 2e-2);
}

struct Tolerance {
  double atol, rtol;
};

bool xformers(const PeerCase& c) {
  constexpr std::array<Tolerance, 3> by_type{{{3e-4, 2e-5}, {4e-3, 4e-4}, {2e-2, 5e-3}}};
  const auto [atol, rtol] = by_type[static_cast<std::size_t>(c.problem.element_type)];
  return all_close(c.outputs[forward::o], c.framework.ref[forward::o], atol, rtol) &&
         all_close(c.outputs[forward::lse], c.framework.ref[forward::lse], 2e-4, 1e-5);
}

bool kernel_bench(const PeerCase& c) {
  const double tolerance = c.problem.element_type == ElementType::fp32 ? 1e-4 : 1e-2;
  return all_close(c.outputs[forward::o], c.framework.ref[forward::o], tolerance, tolerance);
}

bool flash_infer(const PeerCase& c) {
  return all_close(c.outputs[forward::o], c.framework.ref[forward::o], 1e-3, 1e-3) &&
         all_close(c.outputs[forward::lse], c.framework.ref[forward::lse], 1e-3, 1e-3);
}

bool flash_attention_cache(const PeerCase& c) {
  const ElementType type = c.problem.element_type;
  return max_difference(c.outputs[forward::o], c.framework.ref[forward::o], type) <=
         2 * max_difference(c.framework.pt[forward::o], c.framework.ref[forward::o], type) + 1e-5;
}

bool vllm(const PeerCase& c) {
  return all_close(c.outputs[forward::o], c.framework.ref[forward::o], 1e-3, 1e-5);
}

/// Elements that are not close by either measure.
std::int64_t far_apart(const Tensor<float>& got, const Tensor<float>& want, double atol,
                       double rtol) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < got.values().size(); ++i) {
    const double a = got.values()[i], b = want.values()[i];
    if (a == b) continue;
    const bool is_close = std::isfinite(a) && std::isfinite(b) &&
                          std::abs(a - b) <= std::max(atol, rtol * std::abs(b));
    if (!is_close) ++count;
  }
  return count;
}

/// 98 % of the elements of O are close.
bool most_are_close(const PeerCase& c, double tolerance) {
  const Tensor<float>& o = c.outputs[forward::o];
  return static_cast<double>(far_apart(o, c.framework.ref[forward::o], tolerance, tolerance)) <=
         0.02 * static_cast<double>(o.size());
}

bool xqa(const PeerCase& c) {
  return most_are_close(c, 1e-2);
}

/// 1 - 2 a.b / (a.a + b.b), as DeepSeek's tests say cosine difference; 0 for two tensors of zeros.
double cosine_difference(const Tensor<float>& a, const Tensor<float>& b) {
  double product = 0, squares = 0;
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    const double x = a.values()[i], y = b.values()[i];
    product += x * y;
    squares += x * x + y * y;
  }
  return squares == 0 ? 0 : 1 - 2 * product / squares;
}

bool flash_mla(const PeerCase& c) {
  const Tensor<float>& o = c.outputs[forward::o];
  return far_apart(o, c.framework.ref[forward::o], 8e-4, 2.01 / 128) == 0 &&
         cosine_difference(o, c.framework.ref[forward::o]) < 5e-6 &&
         far_apart(c.outputs[forward::lse], c.framework.ref[forward::lse], 1e-6, 8.01 / 65536) == 0;
}

/// Twice the error of the framework's own answer, and one rounding of the golden one. True where
/// the rule does not decide: the framework's answer is off by a tenth of the largest number, or
/// more.
bool within_twice_the_framework(const Tensor<float>& got, const Tensor<double>& golden,
                                const Tensor<float>& framework, ElementType type) {
  double error = 0, of_framework = 0, of_rounding = 0, scale = 0;
  for (std::size_t i = 0; i < got.values().size(); ++i) {
    const double a = got.values()[i], want = golden.values()[i], eager = framework.values()[i];
    if (!std::isfinite(want)) {
      if (std::isnan(want) ? !std::isnan(a) : a != want) return false;
      continue;
    }
    if (!std::isfinite(a)) return false;
    error = std::max(error, std::abs(a - want));
    scale = std::max(scale, std::abs(want));
    of_rounding = std::max(of_rounding, std::abs(round_to(type, want) - want));
    of_framework = std::isnan(eager) ? HUGE_VAL : std::max(of_framework, std::abs(eager - want));
  }
  const bool decides = of_framework <= 0.1 * std::max(scale, of_rounding);
  return !decides || error <= 2 * of_framework + of_rounding;
}

bool torchtitan(const PeerCase& c) {
  const auto outputs = c.problem.operation->outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const OutputIndex index{i};
    if (!has_tensor(c.problem, index)) continue;
    if (!within_twice_the_framework(c.outputs[index], c.framework.wide[index],
                                    c.framework.pt[index], outputs[i].format(c.problem))) {
      return false;
    }
  }
  return true;
}

constexpr std::array<OutputIndex, 3> all_gradients{backward::dq, backward::dk, backward::dv};

/// accepts(output) for dQ, dK and dV.
template <typename Accepts>
bool of_each_gradient(const Accepts& accepts) {
  return std::ranges::all_of(all_gradients, accepts);
}

bool flash_attention_gradient(const PeerCase& c) {
  const ElementType type = c.problem.element_type;
  return of_each_gradient([&](OutputIndex i) {
    return max_difference(c.outputs[i], c.framework.ref[i], type) <=
           3 * max_difference(c.framework.pt[i], c.framework.ref[i], type);
  });
}

/// The absolute part is what adding 0.3 and taking it away leaves of the reference's digits.
bool flash_attention_3_gradient(const PeerCase& c) {
  const ElementType type = c.problem.element_type;
  const bool is_capped = c.problem.softcap != 0;
  return of_each_gradient([&](OutputIndex i) {
    const Tensor<float>& ref = c.framework.ref[i];
    const double digits = largest_of(ref.values().size(), [&](std::size_t e) {
      const double there = round_to(type, ref.values()[e] + 0.3);
      return std::abs(round_to(type, round_to(type, there - 0.3) - ref.values()[e]));
    });
    return max_difference(c.outputs[i], ref, type) <=
           (is_capped ? 3 : 2) * max_difference(c.framework.pt[i], ref, type) + 2 * digits +
               (is_capped ? 3e-4 : 0);
  });
}

bool cudnn_gradient(const PeerCase& c) {
  const double of_keys = c.problem.element_type == ElementType::bf16 ? 7e-2 : 2e-2;
  return of_each_gradient([&](OutputIndex i) {
    return all_close(c.outputs[i], c.framework.wide[i], i == backward::dq ? 2e-2 : of_keys, 2e-2);
  });
}

bool xformers_gradient(const PeerCase& c) {
  constexpr std::array<Tolerance, 3> by_type{{{9e-4, 1e-4}, {0.2, 2e-2}, {0.9, 0.1}}};
  const auto [atol, rtol] = by_type[static_cast<std::size_t>(c.problem.element_type)];
  return of_each_gradient(
      [&](OutputIndex i) { return all_close(c.outputs[i], c.framework.ref[i], atol, rtol); });
}

/// PyTorch's formula computes fp16 and bf16 in fp32, so that all its error is the last rounding.
bool pytorch_gradient(const PeerCase& c) {
  constexpr std::array<double, 3> factors{160, 25, 8};
  const bool is_fp32 = c.problem.element_type == ElementType::fp32;
  return of_each_gradient([&](OutputIndex i) {
    const Tensor<double>& golden = c.framework.wide[i];
    const Tensor<float>& formula = is_fp32 ? c.framework.pt[i] : c.framework.ref[i];
    const double error = max_wide_difference(c.outputs[i], golden);
    const double of_formula = max_wide_difference(formula, golden);
    if (std::isnan(error)) return std::isnan(of_formula);
    // The maximum of a number and NaN is the number there.
    return error <= std::max(1e-5, factors[i.number] * of_formula);
  });
}

bool triton_gradient(const PeerCase& c) {
  return of_each_gradient(
      [&](OutputIndex i) { return all_close(c.outputs[i], c.framework.pt[i], 1e-2, 0); });
}

constexpr std::array forward_rules = std::to_array<PeerRule>({
    {"FlashAttention 2x", "FA 2x",
     "max|o - ref| <= 2 max|pt - ref|, plus 1e-5 when causal, 2e-4 when split", "nothing",
     "flash-attention tests/test_flash_attn.py", flash_attention},
    {"cuDNN 2e-2", "cuDNN", "|o - ref| <= 2e-2 + 2e-2 |ref|", "the same",
     "cudnn-frontend test/python/sdpa", cudnn},
    {"xFormers", "xForm",
     "|o - ref| <= atol + rtol |ref|: fp32 3e-4, 2e-5; fp16 4e-3, 4e-4; bf16 2e-2, 5e-3",
     "2e-4 + 1e-5 |ref|", "xformers tests/test_mem_eff_attention.py, ops/fmha/common.py", xformers},
    {"KernelBench 1e-2", "KBench", "|o - ref| <= t + t |ref|, t = 1e-2, for fp32 1e-4", "nothing",
     "KernelBench eval", kernel_bench},
    {"FlashInfer 1e-3", "FlashI", "|o - ref| <= 1e-3 + 1e-3 |ref|", "the same",
     "flashinfer tests/attention", flash_infer},
    {"FA3 cache 2x", "FA3 2x", "max|o - ref| <= 2 max|pt - ref| + 1e-5", "nothing",
     "flash-attention hopper/test_flash_attn.py, kvcache", flash_attention_cache},
    {"vLLM 1e-3", "vLLM", "|o - ref| <= 1e-3 + 1e-5 |ref|", "nothing",
     "vllm tests/kernels/attention/test_attention.py", vllm},
    {"XQA 98 %", "XQA", "98 % of the elements: |o - ref| <= 1e-2 or |o - ref| <= 1e-2 |ref|",
     "nothing", "flashinfer tests/attention/test_xqa.py", xqa},
    {"FlashMLA", "FMLA",
     "|o - ref| <= 8e-4 or |o - ref| <= 2.01 / 128 |ref|, and 1 - cosine below 5e-6",
     "1e-6 or 8.01 / 65536 |ref|", "FlashMLA tests", flash_mla},
    {"torchtitan 2x", "TTitan",
     "max|o - wide| <= 2 max|pt - wide| + max|wide rounded - wide|; undecided where max|pt - wide| "
     "is over a tenth of max|wide|",
     "the same", "torchtitan .claude/skills/kernel-numerics-verifier", torchtitan},
});

constexpr std::array gradient_rules = std::to_array<PeerRule>({
    {"FlashAttention 3x", "FA 3x", "max|g - ref| <= 3 max|pt - ref|", "the same, each",
     "flash-attention tests/test_flash_attn.py", flash_attention_gradient},
    {"FlashAttention-3 2x", "FA3 2x",
     "max|g - ref| <= 2 max|pt - ref| + 2 max|ref + 0.3 - 0.3 - ref|; with a softcap 3 for the "
     "first 2, plus 3e-4",
     "the same, each", "flash-attention hopper/test_flash_attn.py", flash_attention_3_gradient},
    {"cuDNN 2e-2", "cuDNN", "|g - wide| <= 2e-2 + 2e-2 |wide|",
     "the same, for bf16 7e-2 + 2e-2 |wide|", "cudnn-frontend test/python/sdpa/fp16.py",
     cudnn_gradient},
    {"xFormers", "xForm",
     "|g - ref| <= atol + rtol |ref|: fp32 9e-4, 1e-4; fp16 0.2, 2e-2; bf16 0.9, 0.1", "the same",
     "xformers tests/test_mem_eff_attention.py, ops/fmha/common.py", xformers_gradient},
    {"PyTorch 160x", "PyTor",
     "max|g - wide| <= max(1e-5, 160 max|formula - wide|), where the formula's error is one "
     "rounding of wide, for fp32 that of pt",
     "the same, for dK 25 and for dV 8 times",
     "pytorch test/test_transformers.py, memory-efficient attention with a mask", pytorch_gradient},
    {"Triton 1e-2", "Triton", "|g - pt| <= 1e-2", "the same",
     "triton python/tutorials/06-fused-attention.py", triton_gradient},
    {"torchtitan 2x", "TTitan",
     "max|g - wide| <= 2 max|pt - wide| + max|wide rounded - wide|; undecided where max|pt - wide| "
     "is over a tenth of max|wide|",
     "the same, each", "torchtitan .claude/skills/kernel-numerics-verifier", torchtitan},
});

/// Mean of (o - ref)^2.
bool flash_infer_mean_square(const PeerCase& c) {
  const Tensor<float>&o = c.outputs[forward::o], &ref = c.framework.ref[forward::o];
  double sum = 0;
  for (std::size_t i = 0; i < o.values().size(); ++i) {
    const double error = static_cast<double>(o.values()[i]) - ref.values()[i];
    sum += error * error;
  }
  return o.size() == 0 || sum / static_cast<double>(o.size()) < 1;
}

bool flash_infer_codes(const PeerCase& c) {
  return all_close(c.outputs[forward::o], c.framework.ref[forward::o], 1e-1, 1e-1);
}

bool vllm_codes(const PeerCase& c) {
  return all_close(c.outputs[forward::o], c.framework.ref[forward::o], 1e-2, 1e-5);
}

bool xqa_codes(const PeerCase& c) {
  return most_are_close(c, 5e-2);
}

constexpr std::array code_rules = std::to_array<PeerRule>({
    {"FlashInfer MSE", "FI MSE", "mean of (o - ref)^2 below 1", "nothing",
     "flashinfer tests/attention/test_hopper_fp8_attention.py", flash_infer_mean_square},
    {"FlashInfer 1e-1", "FlashI", "|o - ref| <= 1e-1 + 1e-1 |ref|", "nothing",
     "flashinfer tests/attention/test_batch_decode_kernels.py", flash_infer_codes},
    {"vLLM 1e-2", "vLLM", "|o - ref| <= 1e-2 + 1e-5 |ref|", "nothing",
     "vllm tests/kernels/attention", vllm_codes},
    {"XQA 98 %", "XQA", "98 % of the elements: |o - ref| <= 5e-2 or |o - ref| <= 5e-2 |ref|",
     "nothing", "flashinfer tests/attention/test_xqa.py", xqa_codes},
});

}  // namespace

std::span<const PeerRule> peer_rules(const Operation& operation) {
  if (&operation == &forward_operation) return forward_rules;
  if (&operation == &quantised_operation) return code_rules;
  if (&operation == &backward_operation) return gradient_rules;
  return {};
}

}  // namespace attest
