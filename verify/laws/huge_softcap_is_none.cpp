#include <algorithm>
#include <cmath>

#include "core/operations/forward.hpp"
#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_huge_softcap_is_none {

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
struct Pair {
  Case none, huge;
};
Pair pair_of(Run& run) {
  Pair pair{run.the_case(), run.the_case()};
  pair.none.problem.softcap = 0;
  const double logit = std::abs(static_cast<double>(run.problem().scale)) *
                       longest_row(run.inputs()[forward::q]) *
                       longest_row(run.inputs()[forward::k]);
  pair.huge.problem.softcap = static_cast<float>(0x1p8 * std::max(0x1p-8, logit));
  return pair;
}

const LawRegistration registration{
    {.name = "huge_softcap_is_none",
     .statement = "a softcap far above all logits gives the answer without one, within the sum of "
                  "the bounds",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&forward_operation},
     .applies =
         [](Run& run) {
           return run.kernel().features.softcap &&
                  std::isfinite(pair_of(run).huge.problem.softcap) &&
                  !why_unsupported(run.kernel(), pair_of(run).huge) &&
                  !why_unsupported(run.kernel(), pair_of(run).none);
         },
     .check =
         [](Run& run) {
           const auto [none, huge] = pair_of(run);
           const Launch capped = run.launch(huge, run.inputs());
           const Launch plain = run.launch(none, run.inputs());
           return check_agree(run.kernel(), capped.outputs, plain.outputs,
                              within_bounds(run.answer_to(huge.problem, huge.plan, run.inputs()),
                                            run.answer_to(none.problem, none.plan, run.inputs())),
                              "a softcap far above all logits changed the answer");
         }}};

}  // namespace law_huge_softcap_is_none
}  // namespace attest
