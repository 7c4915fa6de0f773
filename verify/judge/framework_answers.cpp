#include "verify/judge/framework_answers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/attention/dropout.hpp"
#include "core/attention/element_type.hpp"
#include "core/attention/shared_bias.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/quantised.hpp"

namespace attest {
namespace {

/// Factor of the scores into which the scale is multiplied.
enum class Fold { into_query, into_key };

/// State of one query row in a framework before it multiplies by V. Of no keys, there is nothing.
template <typename Real>
struct AttendedRow {
  KeyRange range{};
  std::vector<Real> query{};      ///< the scale in it if it is folded there
  std::vector<Real> tanhs{};      ///< of the keys of `range`, where there is a softcap
  std::vector<Real> weights{};    ///< of the keys of `range`, as dropout leaves them
  std::vector<Real> undropped{};  ///< before dropout; empty without it
  std::vector<Real> factors{};    ///< by which dropout multiplies; empty without it
  Real lse = -std::numeric_limits<Real>::infinity();
};

/// A query head of an entry, computed with the whole score matrix: `Real` is the type of sums and
/// of the softmax; where it `rounds`, every tensor between the operations has the element type.
template <typename Real>
class FrameworkHead {
 public:
  FrameworkHead(const Problem& problem, const Inputs& inputs, bool rounds, Fold fold,
                std::int64_t b, std::int64_t h)
      : p_(problem),
        inputs_(inputs),
        rounds_(rounds),
        fold_(fold),
        b_(b),
        h_(h),
        scale_(static_cast<Real>(problem.scale)),
        key_len_(static_cast<std::size_t>(problem.key_len)),
        keys_(key_len_ * static_cast<std::size_t>(problem.head_dim)) {
    for (std::int64_t j = 0; j < p_.key_len; ++j) {
      const auto k = inputs_[forward::k].row(b_, p_.kv_head_of(h_), j);
      for (std::size_t c = 0; c < k.size(); ++c) {
        keys_[c * key_len_ + static_cast<std::size_t>(j)] = folded(k[c], Fold::into_key);
      }
    }
  }

  /// The value as a framework would store it.
  [[nodiscard]] Real kept(Real value) const {
    if (!rounds_) return value;
    return static_cast<Real>(round_to(p_.element_type, static_cast<double>(value)));
  }

  [[nodiscard]] AttendedRow<Real> row(std::int64_t n) const {
    AttendedRow<Real> row;
    if (visible_key_count(p_, b_, n) == 0) {
      if (p_.sinks != Sinks::none && n < p_.query_len_of(b_)) {
        row.lse = static_cast<Real>(forward::sink_of(p_, inputs_, h_));
      }
      return row;
    }
    row.range = p_.visible_range(b_, n);
    for (const float q : inputs_[forward::q].row(b_, h_, n)) {
      row.query.push_back(folded(q, Fold::into_query));
    }
    row.weights = scores(row);
    if (p_.softcap != 0) cap(row);
    if (has_modifications(p_)) add_terms(row, n);
    for (std::int64_t j = row.range.begin; j < row.range.end; ++j) {
      if (p_.sees(b_, n, j)) continue;
      row.weights[static_cast<std::size_t>(j - row.range.begin)] =
          -std::numeric_limits<Real>::infinity();
    }
    row.lse = softmax(row.weights);
    if (p_.dropout > 0) drop(row, n);
    return row;
  }

  /// An element of O with its gate and residual, every step a tensor.
  [[nodiscard]] Real with_epilogue(Real o, std::int64_t n, std::int64_t column) const {
    o = kept(o);
    if (p_.gate != OutputGate::none) {
      o = kept(o * static_cast<Real>(forward::gate_of(p_, inputs_, b_, h_, n, column)));
    }
    if (p_.residual == Residual::none) return o;
    return kept(o + static_cast<Real>(forward::residual_of(p_, inputs_, b_, h_, n, column)));
  }

  /// The gradient with respect to the row's scores, by those of O and LSE; the latter is empty
  /// where it is 0.
  [[nodiscard]] std::vector<Real> score_gradient(const AttendedRow<Real>& row,
                                                 std::span<const float> d_o,
                                                 std::span<const float> d_lse) const {
    const std::vector<Real>& weights = row.undropped.empty() ? row.weights : row.undropped;
    std::vector<Real> ds(weights.size(), Real{0});
    Real mean = 0;
    for (const float x : d_lse) mean -= static_cast<Real>(x);
    for (std::size_t i = 0; i < ds.size(); ++i) {
      const auto v = inputs_[forward::v].row(b_, p_.kv_head_of(h_), key_of(row, i));
      for (std::size_t c = 0; c < d_o.size(); ++c) {
        ds[i] += static_cast<Real>(d_o[c]) * static_cast<Real>(v[c]);
      }
      ds[i] = kept(ds[i]);
      if (!row.factors.empty()) ds[i] = kept(ds[i] * row.factors[i]);
      mean += weights[i] * ds[i];
    }
    for (std::size_t i = 0; i < ds.size(); ++i) {
      ds[i] = p_.is_padded(b_, key_of(row, i)) ? Real{0} : kept(weights[i] * (ds[i] - mean));
    }
    return ds;
  }

  /// The gradient with respect to the row's scores before the softcap.
  [[nodiscard]] std::vector<Real> before_softcap(const AttendedRow<Real>& row,
                                                 std::vector<Real> ds) const {
    const auto softcap = static_cast<Real>(p_.softcap);
    for (std::size_t i = 0; i < ds.size() && softcap != 0; ++i) {
      const Real t = row.tanhs[i];
      ds[i] = kept(kept(kept(ds[i] * softcap) * (1 - t * t)) / softcap);
    }
    return ds;
  }

  /// What the row gives to the gradient of its head's sink, a column of scores without a value.
  [[nodiscard]] Real sink_gradient(const AttendedRow<Real>& row, std::span<const float> d_o,
                                   std::span<const float> d_lse) const {
    const auto sink = static_cast<Real>(forward::sink_of(p_, inputs_, h_));
    if (!std::isfinite(sink)) return 0;
    Real mean = 0;
    for (const float x : d_lse) mean -= static_cast<Real>(x);
    for (std::size_t i = 0; i < row.weights.size(); ++i) {
      const auto v = inputs_[forward::v].row(b_, p_.kv_head_of(h_), key_of(row, i));
      Real product = 0;
      for (std::size_t c = 0; c < d_o.size(); ++c) {
        product += static_cast<Real>(d_o[c]) * static_cast<Real>(v[c]);
      }
      mean += row.weights[i] * kept(product);
    }
    return -std::exp(sink - row.lse) * mean;
  }

  /// Element c of key j as the scores have it.
  [[nodiscard]] Real key(std::int64_t j, std::size_t c) const {
    return keys_[c * key_len_ + static_cast<std::size_t>(j)];
  }
  /// A gradient as it is stored, with the scale where that is folded into the tensor.
  [[nodiscard]] Real gradient(Real sum, Fold tensor) const {
    return fold_ == tensor ? kept(kept(sum) * scale_) : kept(sum);
  }
  [[nodiscard]] static std::int64_t key_of(const AttendedRow<Real>& row, std::size_t i) {
    return row.range.begin + static_cast<std::int64_t>(i);
  }

 private:
  [[nodiscard]] Real folded(float x, Fold tensor) const {
    const auto value = static_cast<Real>(x);
    return fold_ == tensor ? kept(value * scale_) : value;
  }

  [[nodiscard]] std::vector<Real> scores(const AttendedRow<Real>& row) const {
    std::vector<Real> result(static_cast<std::size_t>(row.range.size()), Real{0});
    const auto begin = static_cast<std::size_t>(row.range.begin);
    for (std::size_t c = 0; c < row.query.size(); ++c) {
      const Real* const column = keys_.data() + c * key_len_ + begin;
      for (std::size_t i = 0; i < result.size(); ++i) result[i] += row.query[c] * column[i];
    }
    for (Real& score : result) score = kept(score);
    return result;
  }

  /// c tanh(s / c), every step a tensor.
  void cap(AttendedRow<Real>& row) const {
    const auto c = static_cast<Real>(p_.softcap);
    for (Real& score : row.weights) {
      row.tanhs.push_back(kept(std::tanh(kept(score / c))));
      score = kept(c * row.tanhs.back());
    }
  }

  /// ALiBi and the bias, every step a tensor.
  void add_terms(AttendedRow<Real>& row, std::int64_t n) const {
    for (std::size_t i = 0; i < row.weights.size(); ++i) {
      Real& score = row.weights[i];
      const std::int64_t key = key_of(row, i);
      if (p_.slopes != Slopes::none) {
        score = kept(score + static_cast<Real>(forward::alibi_of(p_, inputs_, b_, h_, n, key)));
      }
      if (p_.bias != Bias::none) {
        score = kept(score + static_cast<Real>(forward::bias_of(p_, inputs_, b_, h_, n, key)));
      }
    }
  }

  /// Dropout of the weights.
  void drop(AttendedRow<Real>& row, std::int64_t n) const {
    const Real factor = p_.dropout < 1 ? 1 / (1 - static_cast<Real>(p_.dropout)) : Real{0};
    row.undropped = row.weights;
    for (std::size_t i = 0; i < row.weights.size(); ++i) {
      row.factors.push_back(keeps_weight(p_, b_, h_, n, key_of(row, i)) ? factor : Real{0});
      row.weights[i] = kept(row.weights[i] * row.factors[i]);
    }
  }

  /// Softmax in place, of the scores and the head's sink; returns the LSE. NaN where a framework
  /// gives NaN.
  Real softmax(std::vector<Real>& scores) const {
    const Real sink = p_.sinks == Sinks::none
                          ? -std::numeric_limits<Real>::infinity()
                          : static_cast<Real>(forward::sink_of(p_, inputs_, h_));
    Real m = sink;
    for (const Real score : scores) m = score > m || std::isnan(score) ? score : m;
    if (p_.bias != Bias::none && m == -std::numeric_limits<Real>::infinity()) {
      std::ranges::fill(scores, Real{0});  // as frameworks answer for rows that a bias empties
      return m;
    }
    Real l = std::isfinite(sink) ? std::exp(sink - m) : Real{0};
    for (Real& score : scores) {
      score = std::exp(score - m);
      l += score;
    }
    for (Real& score : scores) score = kept(score / l);
    return m + std::log(l);
  }

  const Problem& p_;
  const Inputs& inputs_;
  bool rounds_;
  Fold fold_;
  std::int64_t b_, h_;
  Real scale_;
  std::size_t key_len_;
  std::vector<Real> keys_;  ///< [head_dim, key_len], the scale in it if it is folded there
};

WideOutputs zero_outputs(const Problem& problem) {
  WideOutputs outputs;
  for (std::size_t i = 0; i < problem.operation->outputs().size(); ++i) {
    outputs[OutputIndex{i}] = Tensor<double>(problem.operation->outputs()[i].shape(problem));
  }
  return outputs;
}

template <typename Real>
WideOutputs framework_attention(const Problem& p, const Inputs& inputs, bool rounds, Fold fold) {
  WideOutputs outputs = zero_outputs(p);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      const FrameworkHead<Real> head(p, inputs, rounds, fold, b, h);
      for (std::int64_t n = 0; n < p.query_len; ++n) {
        const AttendedRow<Real> row = head.row(n);
        outputs[forward::lse].at(b, h, n, 0) = static_cast<double>(row.lse);
        std::vector<Real> sums(static_cast<std::size_t>(p.output_dim()), Real{0});
        for (std::size_t i = 0; i < row.weights.size(); ++i) {
          const auto v = inputs[forward::v].row(b, p.kv_head_of(h), head.key_of(row, i));
          for (std::size_t c = 0; c < sums.size(); ++c) {
            sums[c] += row.weights[i] * static_cast<Real>(v[c]);
          }
        }
        if (has_epilogue(p) && n < p.query_len_of(b)) {
          for (std::size_t c = 0; c < sums.size(); ++c) {
            sums[c] = head.with_epilogue(sums[c], n, static_cast<std::int64_t>(c));
          }
        }
        const auto o = outputs[forward::o].row(b, h, n);
        for (std::size_t c = 0; c < sums.size(); ++c) o[c] = static_cast<double>(sums[c]);
      }
    }
  }
  return outputs;
}

/// Sums that one query head adds to dK and dV of its KV head, [keys, dim].
template <typename Real>
struct KeySums {
  std::vector<Real> dk, dv;
  Real dsink{};
};

/// Adds the gradient of a row's scores to that of the bias.
template <typename Real>
void add_to_bias(const Problem& p, const Inputs& inputs, const AttendedRow<Real>& row,
                 const std::vector<Real>& ds, const Shape& at, Tensor<double>& d_bias) {
  const auto [b, h, n, unused] = at;
  const auto sum = d_bias.row(entries_share_bias(p) ? 0 : b, heads_share_bias(p) ? 0 : h, n);
  for (std::size_t i = 0; i < ds.size(); ++i) {
    const std::int64_t key = FrameworkHead<Real>::key_of(row, i);
    if (!forward::sees(p, inputs, b, h, n, key)) continue;
    sum[static_cast<std::size_t>(key)] += static_cast<double>(ds[i]);
  }
}

/// Writes dQ of the head's rows, and adds what they give to the gradient of a bias.
template <typename Real>
KeySums<Real> gradient_of_head(const Problem& p, const Inputs& inputs,
                               const FrameworkHead<Real>& head, std::int64_t b, std::int64_t h,
                               WideOutputs& outputs) {
  Tensor<double>& dq = outputs[backward::dq];
  const auto dim = static_cast<std::size_t>(p.head_dim);
  const auto value_dim = static_cast<std::size_t>(p.output_dim());
  const auto keys = static_cast<std::size_t>(p.key_len);
  KeySums<Real> sums{std::vector<Real>(keys * dim), std::vector<Real>(keys * value_dim), 0};
  for (std::int64_t n = 0; n < p.query_len; ++n) {
    const AttendedRow<Real> row = head.row(n);
    const auto d_o = inputs[backward::d_o].row(b, h, n);
    const std::vector<Real> of_scores =
        head.score_gradient(row, d_o, inputs[backward::d_lse].row(b, h, n));
    if (p.bias != Bias::none)
      add_to_bias(p, inputs, row, of_scores, {b, h, n, 0}, outputs[backward::d_bias]);
    const std::vector<Real> ds = head.before_softcap(row, of_scores);
    std::vector<Real> of_query(dim, Real{0});
    for (std::size_t i = 0; i < ds.size(); ++i) {
      const std::int64_t j = head.key_of(row, i);
      Real* const dk = sums.dk.data() + static_cast<std::size_t>(j) * dim;
      Real* const dv = sums.dv.data() + static_cast<std::size_t>(j) * value_dim;
      for (std::size_t c = 0; c < dim; ++c) {
        of_query[c] += ds[i] * head.key(j, c);
        dk[c] += ds[i] * row.query[c];
      }
      for (std::size_t c = 0; c < value_dim; ++c) {
        dv[c] += row.weights[i] * static_cast<Real>(d_o[c]);
      }
    }
    for (std::size_t c = 0; c < dim; ++c) {
      dq.row(b, h, n)[c] = static_cast<double>(head.gradient(of_query[c], Fold::into_query));
    }
    if (p.sinks == Sinks::none || n >= p.query_len_of(b)) continue;
    sums.dsink += head.sink_gradient(row, d_o, inputs[backward::d_lse].row(b, h, n));
  }
  // Each of them is a tensor: frameworks repeat K and V, and sum over the group at last.
  for (Real& x : sums.dk) x = head.gradient(x, Fold::into_key);
  for (Real& x : sums.dv) x = head.kept(x);
  return sums;
}

template <typename Real>
WideOutputs framework_gradients(const Problem& p, const Inputs& inputs, bool rounds, Fold fold) {
  WideOutputs outputs = zero_outputs(p);
  const auto add = [](const std::vector<Real>& part, std::vector<Real>& sum) {
    sum.resize(part.size(), Real{0});
    for (std::size_t i = 0; i < part.size(); ++i) sum[i] += part[i];
  };
  const auto write = [](const std::vector<Real>& sum, Tensor<double>& to, std::int64_t b,
                        std::int64_t kv) {
    const auto dim = static_cast<std::size_t>(to.shape()[3]);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      to.row(b, kv, static_cast<std::int64_t>(i / dim))[i % dim] = static_cast<double>(sum[i]);
    }
  };
  const std::int64_t group = p.query_heads / p.kv_heads;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t kv = 0; kv < p.kv_heads; ++kv) {
      KeySums<Real> total;
      for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
        const FrameworkHead<Real> head(p, inputs, rounds, fold, b, h);
        const KeySums<Real> part = gradient_of_head(p, inputs, head, b, h, outputs);
        add(part.dk, total.dk);
        add(part.dv, total.dv);
        if (p.sinks == Sinks::none) continue;
        outputs[backward::d_sinks].at(0, h, 0, 0) += static_cast<double>(part.dsink);
      }
      write(total.dk, outputs[backward::dk], b, kv);
      write(total.dv, outputs[backward::dv], b, kv);
    }
  }
  return outputs;
}

Tensor<float> in_format(ElementType format, const Tensor<double>& from) {
  Tensor<float> to(from.shape());
  for (std::size_t e = 0; e < from.values().size(); ++e) {
    to.values()[e] = static_cast<float>(round_to(format, from.values()[e]));
  }
  return to;
}

Outputs in_their_formats(const Problem& problem, const WideOutputs& wide) {
  Outputs outputs;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const ElementType format = problem.operation->outputs()[i].format(problem);
    outputs[OutputIndex{i}] = in_format(format, wide[OutputIndex{i}]);
  }
  return outputs;
}

/// Numbers that codes and scales stand for, as a framework keeps them: in fp32.
Inputs in_fp32(const RealInputs& numbers) {
  return {in_format(ElementType::fp32, numbers[forward::q]),
          in_format(ElementType::fp32, numbers[forward::k]),
          in_format(ElementType::fp32, numbers[forward::v])};
}

}  // namespace

FrameworkAnswers framework_answers(const Problem& problem, const Inputs& inputs) {
  if (problem.operation == &quantised_operation) {
    Problem attention = problem;
    attention.operation = &forward_operation;
    attention.codes = {};
    return framework_answers(attention, in_fp32(quantised::numbers_of(problem, inputs)));
  }
  const bool is_gradient = problem.operation == &backward_operation;
  const auto in_double = is_gradient ? framework_gradients<double> : framework_attention<double>;
  const auto in_float = is_gradient ? framework_gradients<float> : framework_attention<float>;
  FrameworkAnswers answers;
  answers.wide = (problem.element_type == ElementType::fp32 ? in_double : in_float)(
      problem, inputs, false, Fold::into_query);
  answers.ref = in_their_formats(problem, answers.wide);
  answers.pt = in_their_formats(problem, in_float(problem, inputs, true, Fold::into_key));
  return answers;
}

}  // namespace attest
