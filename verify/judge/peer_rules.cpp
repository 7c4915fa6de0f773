#include "verify/judge/peer_rules.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/operations/forward.hpp"
#include "verify/judge/verdict.hpp"

namespace attest {
namespace {

/// Attention of one query row as a framework computes it: `Real` is the type of sums and of the
/// softmax, `stored` the format of every tensor between the operations.
template <typename Real>
class FrameworkRow {
 public:
  FrameworkRow(ElementType stored, bool rounds) : stored_(stored), rounds_(rounds) {}

  /// The value as a framework would store it.
  [[nodiscard]] Real kept(Real value) const {
    if (!rounds_) return value;
    return static_cast<Real>(round_to(stored_, static_cast<double>(value)));
  }

  /// Scores of the keys of `range`; `keys` is [head_dim, key_len].
  std::vector<Real> scores(std::span<const Real> query, const std::vector<Real>& keys,
                           std::size_t key_len, const KeyRange& range) const {
    std::vector<Real> result(static_cast<std::size_t>(range.size()), Real{0});
    const auto begin = static_cast<std::size_t>(range.begin);
    for (std::size_t d = 0; d < query.size(); ++d) {
      const Real* const row = keys.data() + d * key_len + begin;
      for (std::size_t j = 0; j < result.size(); ++j) result[j] += query[d] * row[j];
    }
    for (Real& score : result) score = kept(score);
    return result;
  }

  /// c tanh(s / c), every step a tensor.
  void cap(std::vector<Real>& scores, Real c) const {
    for (Real& score : scores) score = kept(c * kept(std::tanh(kept(score / c))));
  }

  /// Softmax in place; returns the LSE. NaN where a framework gives NaN.
  Real softmax(std::vector<Real>& scores) const {
    Real m = -std::numeric_limits<Real>::infinity();
    for (const Real score : scores) m = score > m || std::isnan(score) ? score : m;
    Real l = 0;
    for (Real& score : scores) {
      score = std::exp(score - m);
      l += score;
    }
    for (Real& score : scores) score = kept(score / l);
    return m + std::log(l);
  }

 private:
  ElementType stored_;
  bool rounds_;
};

enum class Fold { into_query, into_key };

/// O, and LSE when it is wanted.
template <typename Real>
void framework_attention(const Problem& p, const Inputs& inputs, bool rounds, Fold fold,
                         Tensor<float>& o, Tensor<float>* lse) {
  const FrameworkRow<Real> row(p.element_type, rounds);
  const auto key_len = static_cast<std::size_t>(p.key_len);
  const auto scale = static_cast<Real>(p.scale);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      const std::int64_t kv = p.kv_head_of(h);
      std::vector<Real> keys(key_len * static_cast<std::size_t>(p.head_dim));
      for (std::int64_t j = 0; j < p.key_len; ++j) {
        const auto k = inputs[forward::k].row(b, kv, j);
        for (std::size_t d = 0; d < k.size(); ++d) {
          const auto value = static_cast<Real>(k[d]);
          keys[d * key_len + static_cast<std::size_t>(j)] =
              fold == Fold::into_key ? row.kept(value * scale) : value;
        }
      }
      for (std::int64_t n = 0; n < p.query_len; ++n) {
        const KeyRange range = p.visible_range(b, n);
        if (visible_key_count(p, b, n) == 0) {
          if (lse != nullptr) lse->at(b, h, n, 0) = -std::numeric_limits<float>::infinity();
          continue;  // o is zeros
        }
        std::vector<Real> query;
        for (const float q : inputs[forward::q].row(b, h, n)) {
          const auto value = static_cast<Real>(q);
          query.push_back(fold == Fold::into_query ? row.kept(value * scale) : value);
        }
        std::vector<Real> weights = row.scores(query, keys, key_len, range);
        if (p.softcap != 0) row.cap(weights, static_cast<Real>(p.softcap));
        for (std::int64_t j = range.begin; j < range.end; ++j) {
          if (!p.is_padded(b, j)) continue;
          weights[static_cast<std::size_t>(j - range.begin)] =
              -std::numeric_limits<Real>::infinity();
        }
        const Real log_sum = row.softmax(weights);
        if (lse != nullptr) lse->at(b, h, n, 0) = static_cast<float>(log_sum);
        std::vector<Real> sums(static_cast<std::size_t>(p.output_dim()), Real{0});
        for (std::size_t j = 0; j < weights.size(); ++j) {
          const auto v = inputs[forward::v].row(b, kv, range.begin + static_cast<std::int64_t>(j));
          for (std::size_t d = 0; d < sums.size(); ++d) {
            sums[d] += weights[j] * static_cast<Real>(v[d]);
          }
        }
        const auto out = o.row(b, h, n);
        for (std::size_t d = 0; d < sums.size(); ++d) {
          out[d] = static_cast<float>(round_to(p.element_type, static_cast<double>(sums[d])));
        }
      }
    }
  }
}

/// max |a - b| as torch computes it: the difference is a tensor of the element type, and a NaN
/// stays.
double max_difference(const Tensor<float>& a, const Tensor<float>& b, ElementType type) {
  double largest = 0;
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    const double difference =
        std::abs(round_to(type, static_cast<double>(a.values()[i]) - b.values()[i]));
    if (difference > largest || std::isnan(difference)) largest = difference;
    if (std::isnan(largest)) break;
  }
  return largest;
}

/// torch.allclose(got, want): |got - want| <= atol + rtol |want| everywhere; equal infinities are
/// close, NaN is not.
bool all_close(const Tensor<float>& got, const Tensor<float>& want, double atol, double rtol) {
  for (std::size_t i = 0; i < got.values().size(); ++i) {
    const double a = got.values()[i];
    const double b = want.values()[i];
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
  const double error = max_difference(c.outputs[forward::o], c.framework.ref, type);
  return error <= 2 * max_difference(c.framework.pt, c.framework.ref, type) + allowance;
}

bool cudnn(const PeerCase& c) {
  return all_close(c.outputs[forward::o], c.framework.ref, 2e-2, 2e-2) &&
         all_close(c.outputs[forward::lse], c.framework.lse, 2e-2, 2e-2);
}

bool xformers(const PeerCase& c) {
  struct Tolerance {
    double atol, rtol;
  };
  constexpr std::array<Tolerance, 3> by_type{{{3e-4, 2e-5}, {4e-3, 4e-4}, {2e-2, 5e-3}}};
  const auto [atol, rtol] = by_type[static_cast<std::size_t>(c.problem.element_type)];
  return all_close(c.outputs[forward::o], c.framework.ref, atol, rtol) &&
         all_close(c.outputs[forward::lse], c.framework.lse, 2e-4, 1e-5);
}

bool kernel_bench(const PeerCase& c) {
  const double tolerance = c.problem.element_type == ElementType::fp32 ? 1e-4 : 1e-2;
  return all_close(c.outputs[forward::o], c.framework.ref, tolerance, tolerance);
}

bool flash_infer(const PeerCase& c) {
  return all_close(c.outputs[forward::o], c.framework.ref, 1e-3, 1e-3) &&
         all_close(c.outputs[forward::lse], c.framework.lse, 1e-3, 1e-3);
}

bool flash_attention_cache(const PeerCase& c) {
  const ElementType type = c.problem.element_type;
  return max_difference(c.outputs[forward::o], c.framework.ref, type) <=
         2 * max_difference(c.framework.pt, c.framework.ref, type) + 1e-5;
}

bool vllm(const PeerCase& c) {
  return all_close(c.outputs[forward::o], c.framework.ref, 1e-3, 1e-5);
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

bool xqa(const PeerCase& c) {
  const Tensor<float>& o = c.outputs[forward::o];
  return static_cast<double>(far_apart(o, c.framework.ref, 1e-2, 1e-2)) <=
         0.02 * static_cast<double>(o.size());
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
  return far_apart(o, c.framework.ref, 8e-4, 2.01 / 128) == 0 &&
         cosine_difference(o, c.framework.ref) < 5e-6 &&
         far_apart(c.outputs[forward::lse], c.framework.lse, 1e-6, 8.01 / 65536) == 0;
}

void ask_peers(Run& run, Judgement& judgement) {
  const FrameworkAnswers framework = framework_answers(run.problem(), run.inputs());
  const PeerCase peer_case{run.problem(), run.the_case().plan, run.base().outputs, framework};
  for (std::size_t i = 0; i < peer_columns; ++i) {
    judgement.rejected[i] = !peer_rules()[i].accepts(peer_case);
  }
}

/// Layer by layer, so that each is asked whatever the others say.
void ask_laws(Run& run, const std::string& always, Judgement& judgement) {
  for (const Layer layer : {Layer::exact, Layer::bound, Layer::statistics}) {
    CaseVerdict verdict = verify_case(run, {.layers = {layer}});
    if (!verdict.failure) {
      verdict = verify_case(run, {.glob = always, .layers = {layer}, .every_law = true});
    }
    if (!verdict.failure) continue;
    judgement.rejected[peer_columns + static_cast<std::size_t>(layer)] = true;
    judgement.laws.push_back(verdict.failure->law);
  }
}

}  // namespace

FrameworkAnswers framework_answers(const Problem& problem, const Inputs& inputs) {
  FrameworkAnswers answers{.ref = Tensor<float>(output_shape(problem)),
                           .pt = Tensor<float>(output_shape(problem)),
                           .lse = Tensor<float>(lse_shape(problem))};
  if (problem.element_type == ElementType::fp32) {
    framework_attention<double>(problem, inputs, false, Fold::into_query, answers.ref,
                                &answers.lse);
  } else {
    framework_attention<float>(problem, inputs, false, Fold::into_query, answers.ref, &answers.lse);
  }
  framework_attention<float>(problem, inputs, true, Fold::into_key, answers.pt, nullptr);
  return answers;
}

const std::array<PeerRule, peer_columns>& peer_rules() {
  static const std::array<PeerRule, peer_columns> rules{{
      {"FlashAttention 2x",
       "max|o - ref| <= 2 max|pt - ref|, plus 1e-5 when causal, 2e-4 when split", "nothing",
       "flash-attention tests/test_flash_attn.py", flash_attention},
      {"cuDNN 2e-2", "|o - ref| <= 2e-2 + 2e-2 |ref|", "the same",
       "cudnn-frontend test/python/sdpa", cudnn},
      {"xFormers",
       "|o - ref| <= atol + rtol |ref|: fp32 3e-4, 2e-5; fp16 4e-3, 4e-4; bf16 2e-2, 5e-3",
       "2e-4 + 1e-5 |ref|", "xformers tests/test_mem_eff_attention.py, ops/fmha/common.py",
       xformers},
      {"KernelBench 1e-2", "|o - ref| <= t + t |ref|, t = 1e-2, for fp32 1e-4", "nothing",
       "KernelBench eval", kernel_bench},
      {"FlashInfer 1e-3", "|o - ref| <= 1e-3 + 1e-3 |ref|", "the same",
       "flashinfer tests/attention", flash_infer},
      {"FA3 cache 2x", "max|o - ref| <= 2 max|pt - ref| + 1e-5", "nothing",
       "flash-attention hopper/test_flash_attn.py, kvcache", flash_attention_cache},
      {"vLLM 1e-3", "|o - ref| <= 1e-3 + 1e-5 |ref|", "nothing",
       "vllm tests/kernels/attention/test_attention.py", vllm},
      {"XQA 98 %", "98 % of the elements: |o - ref| <= 1e-2 or |o - ref| <= 1e-2 |ref|", "nothing",
       "flashinfer tests/attention/test_xqa.py", xqa},
      {"FlashMLA", "|o - ref| <= 8e-4 or |o - ref| <= 2.01 / 128 |ref|, and 1 - cosine below 5e-6",
       "1e-6 or 8.01 / 65536 |ref|", "FlashMLA tests", flash_mla},
  }};
  return rules;
}

Judgement judge_by_rules(Run& run, Judges judges, const std::string& always) {
  Judgement judgement;
  ask_peers(run, judgement);
  if (judges == Judges::all_rules) ask_laws(run, always, judgement);
  return judgement;
}

}  // namespace attest
