// Other numbers, scales or Plans from which the same answer follows, or the same for some rows.
#include <fmt/format.h>

#include <cmath>

#include "core/attention/element_type.hpp"
#include "core/attention/quantiser.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"
#include "verify/judge/variation.hpp"

namespace attest {
namespace value_variations {

/// One of the other Plans that run the case.
Varied with_other_plan(Run& run, const LawDraws& draws) {
  std::vector<Plan> plans;
  Case other = run.the_case();
  for (const Plan& plan : run.kernel().plans(run.problem())) {
    other.plan = plan;
    if (plan == run.the_case().plan || why_unsupported(run.kernel(), other)) continue;
    plans.push_back(plan);
  }
  if (plans.empty()) return {};
  other.plan =
      plans[static_cast<std::size_t>(draws.below(static_cast<std::int64_t>(plans.size())))];
  return Variation{.call = {other},
                   .has_own_bound = true,
                   .failure = fmt::format("plan {} gives another answer", to_string(other.plan))};
}

/// The longest row in the sense of Euclid; NaN and infinity count as infinite.
double longest_row(const Tensor<float>& tensor) {
  double longest = 0;
  const Shape shape = tensor.shape();
  for (std::int64_t first = 0; first < tensor.size(); first += shape[3]) {
    double squares = 0;
    for (const float x : tensor.values().subspan(static_cast<std::size_t>(first),
                                                 static_cast<std::size_t>(shape[3]))) {
      squares += static_cast<double>(x) * x;
    }
    longest = squares <= longest ? longest : squares;
  }
  return std::sqrt(longest);
}

/// The case without a softcap, and with one c of 2^8 times the largest logit L, by Cauchy and
/// Schwarz: c tanh(s / c) then differs from s by at most L^3 / (3 c^2) = L 2^-16 / 3, a third of
/// one fp32 rounding of c, which a softcap is always allowed.
Varied with_huge_softcap(Run& run, const LawDraws&) {
  if (!run.kernel().features.softcap) return {};
  Case none = run.the_case(), huge = run.the_case();
  none.problem.softcap = 0;
  const double logit = std::abs(static_cast<double>(run.problem().scale)) *
                       longest_row(run.inputs()[forward::q]) *
                       longest_row(run.inputs()[forward::k]);
  huge.problem.softcap = static_cast<float>(0x1p8 * std::max(0x1p-8, logit));
  if (!std::isfinite(huge.problem.softcap)) return {};
  return Variation{.call = {huge}, .has_own_bound = true, .reference = OtherCall{none}};
}

/// A finer kind of scales that the kernel takes instead of one a head.
std::optional<Scales> finer(const std::vector<Scales>& taken, Scales now, std::uint64_t draw) {
  if (now != Scales::head) return std::nullopt;
  std::vector<Scales> finer;
  std::ranges::copy_if(taken, std::back_inserter(finer),
                       [](Scales kind) { return kind != Scales::none && kind != Scales::head; });
  if (finer.empty()) return std::nullopt;
  return finer[draw % finer.size()];
}

/// One scale a head, said for each row, block or column of the tensor.
Tensor<float> spread(const Tensor<float>& tensor, const Tensor<float>& of_heads, Scales kind) {
  Tensor<float> repeated(scales_shape(tensor.shape(), kind));
  const Shape& shape = repeated.shape();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        std::ranges::fill(repeated.row(b, h, n), of_heads.at(b, h, 0, 0));
      }
    }
  }
  return repeated;
}

Varied with_finer_scales(Run& run, const LawDraws&) {
  const std::uint64_t seed = run.the_case().inputs.seed;
  const KernelInfo& kernel = run.kernel();
  Case c = run.the_case();
  Codes& codes = c.problem.codes;
  const auto of_k = finer(kernel.codes.k_scales, codes.k_scales, seed / 2);
  const auto of_v = finer(kernel.codes.v_scales, codes.v_scales, seed / 7);
  if (!of_k && !of_v) return {};
  codes.k_scales = of_k.value_or(codes.k_scales);
  codes.v_scales = of_v.value_or(codes.v_scales);
  // A layout of one scale a head may leave no room for more.
  c.layouts[quantised::k_scale] = c.layouts[quantised::v_scale] = {};
  c.layouts = fitted(kernel.layout_needs, c.problem, c.layouts);
  const auto inputs = [of_k, of_v](Inputs from) {
    using namespace quantised;
    if (of_k) from[k_scale] = spread(from[k], from[k_scale], *of_k);
    if (of_v) from[v_scale] = spread(from[v], from[v_scale], *of_v);
    return from;
  };
  return Variation{.call = {c, inputs}, .has_own_bound = true};
}

/// Factor of the other queries: 32, so that their scores outgrow whatever their rows were scaled by
/// before, or less where the format would not hold them. -1 where heads may be scaled by their
/// largest element.
float factor_of_queries(const Inputs& inputs, ElementType type, bool scales_heads) {
  if (scales_heads) return -1.0F;
  float largest = 0;
  for (const float x : inputs[forward::q].values()) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  const double room = format_of(type).max_finite / 2;
  float factor = 32;
  while (factor > 1 && largest * static_cast<double>(factor) > room) factor /= 2;
  return factor > 1 ? factor : -1.0F;
}

/// Half of the rows keep their query.
Varied with_other_queries(Run& run, const LawDraws& draws) {
  const Problem& p = run.problem();
  if (p.rows() < 2 || p.key_len == 0) return {};
  const auto keeps_query = [p, draws](const RowPlace& row) {
    const std::int64_t number = (row.b * p.query_heads + row.h) * p.query_len + row.n;
    return draws.below(2, static_cast<std::uint64_t>(number)) == 0;
  };
  const PrecisionPlan plan = run.kernel().precision(p, run.the_case().plan).as<PrecisionPlan>();
  const auto inputs = [=, scales_heads =
                              may_scale_heads(run.kernel(), plan.score_parts)](Inputs from) {
    const float factor = factor_of_queries(from, p.element_type, scales_heads);
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < p.query_heads; ++h) {
        for (std::int64_t n = 0; n < p.query_len; ++n) {
          if (keeps_query({b, h, n})) continue;
          for (float& x : from[forward::q].row(b, h, n)) x *= factor;
        }
      }
    }
    return from;
  };
  return Variation{.call = {run.the_case(), inputs},
                   .row_owed = [=](OutputIndex, const RowPlace& row) {
                     return keeps_query(row) ? std::optional(row) : std::nullopt;
                   }};
}

/// Finite, and no bit of them that was there.
Varied with_other_values(Run& run, const LawDraws&) {
  if (!run.kernel().gives(backward::dv)) return {};
  const auto inputs = [](Inputs from) {
    for (const InputIndex index : {backward::v, backward::o, backward::d_lse}) {
      const auto values = from[index].values();
      std::ranges::reverse(values);
      for (float& x : values) x = -x / 2;
    }
    return from;
  };
  return Variation{.call = {run.the_case(), inputs},
                   .row_owed = [](OutputIndex output, const RowPlace& row) {
                     return output == backward::dv ? std::optional(row) : std::nullopt;
                   }};
}

Varied with_zeros_of_lse(Run& run, const LawDraws&) {
  if (run.problem().lse_gradient != LseGradient::given) return {};
  Case absent = run.the_case();
  absent.problem.lse_gradient = LseGradient::zero;
  const auto zeros_for = [](const Problem& problem) {
    return [problem](Inputs from) {
      from[backward::d_lse] = Tensor<float>(backward_operation[backward::d_lse].shape(problem));
      return from;
    };
  };
  return Variation{.call = {run.the_case(), zeros_for(run.problem())},
                   .reference = OtherCall{absent, zeros_for(absent.problem)}};
}

const VariationLaws registration{{
    {.name = "plan_invariance",
     .statement = "two plans agree within the sum of their bounds",
     .layer = Layer::bound,
     .stream = stream_other_plan,
     .vary = with_other_plan},
    {.name = "huge_softcap_is_none",
     .statement = "a softcap far above all logits gives the answer without one, within the sum of "
                  "the bounds",
     .layer = Layer::bound,
     .operations = {&forward_operation},
     .failure = "a softcap far above all logits changed the answer",
     .vary = with_huge_softcap},
    {.name = "equal_scales_agree",
     .statement = "one scale a head, and the same scale said for each of its rows, blocks or "
                  "columns, give one answer within both bounds",
     .layer = Layer::bound,
     .operations = {&quantised_operation},
     .failure = "the same scale said more often gives another answer",
     .vary = with_finer_scales},
    {.name = "other_queries_irrelevant",
     .statement = "a row whose query stays keeps its bits, whatever the other queries become: no "
                  "reference that it shares with its neighbours, no other's maximum",
     .operations = {&forward_operation},
     .same_bits_but_for = Differences{.neighbours = true},
     .failure = "other queries changed, and a row whose query stayed has another result",
     .stream = stream_other_queries,
     .vary = with_other_queries},
    {.name = "values_do_not_enter_dv",
     .statement = "dV = P^T dO keeps its bits whatever V, O and dLSE are: it is formed from P, and "
                  "not from dS",
     .operations = {&backward_operation},
     .same_bits_but_for = Differences{},
     .failure = "V, O and dLSE became others, and dV changed",
     .vary = with_other_values},
    {.name = "absent_lse_gradient_is_zero",
     .statement = "a dLSE of zeros changes no bit against none",
     .operations = {&backward_operation},
     .same_bits_but_for = Differences{},
     .failure = "a dLSE of zeros gives another gradient than none",
     .vary = with_zeros_of_lse},
}};

}  // namespace value_variations
}  // namespace attest
