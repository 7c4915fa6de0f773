#include <array>
#include <cmath>
#include <limits>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "verify/cases/planting.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_nan_stays_in_its_rows {

/// Half of them in V: only there a weight that underflowed stands beside the NaN.
Spot::Where drawn_tensor(const Run& run) {
  constexpr std::array where{Spot::Where::query, Spot::Where::key, Spot::Where::value,
                             Spot::Where::value};
  return where[static_cast<std::size_t>(
      random_below(run.the_case().inputs.seed, stream_nan, 0, 4))];
}

/// True if column `d` of an output of a row depends on the spot. A value reaches one column of O
/// only.
bool depends_on(const Problem& p, const Spot& spot, OutputIndex output, std::int64_t b,
                std::int64_t h, std::int64_t n, std::int64_t d) {
  return sees(p, spot, b, h, n) &&
         (spot.where != Spot::Where::value || (output == forward::o && d == spot.d));
}

/// The elements that depend on the NaN are NaN; LSE is -infinity where the kernel says that it may.
Check check_reached(const Run& run, const Outputs& outputs, const IsCompared& is_hit) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return check_rows(run.problem(), [&](std::int64_t b, std::int64_t h, std::int64_t n) {
    for (const OutputIndex output : {forward::o, forward::lse}) {
      if (!run.kernel().gives(output)) continue;
      for (std::int64_t d = 0; d < outputs[output].shape()[3]; ++d) {
        if (!is_hit(output, b, h, n, d)) continue;
        const float got = outputs[output].at(b, h, n, d);
        const bool may_be_empty =
            output == forward::lse && run.kernel().nan_rows_may_have_empty_lse;
        if (std::isnan(got) || (may_be_empty && std::isinf(got) && got < 0)) continue;
        return Check::failed_at(std::string(forward_operation[output].label),
                                {.index = {b, h, n, d}, .got = got, .want = nan},
                                "a NaN input was swallowed");
      }
    }
    return Check::passed();
  });
}

const LawRegistration registration{
    {.name = "nan_stays_in_its_rows",
     .statement = "a NaN in Q, K or V makes NaN of the rows that see it (of its column, in V, "
                  "however small its weight) and changes no other bit; kernels that do not keep "
                  "a hidden NaN out are held to the first, for V",
     .cost = Law::Cost::more_launches,
     .operations = {&forward_operation},
     .needs_own_values = true,
     .applies =
         [](Run& run) {
           const Problem& p = run.problem();
           // A bias may hide the NaN from rows of some heads.
           return p.key_len > 0 && p.query_len > 0 && p.bias == Bias::none &&
                  (run.kernel().ignores_hidden_nan || drawn_tensor(run) == Spot::Where::value);
         },
     .check =
         [](Run& run) {
           const Problem& p = run.problem();
           const Spot spot = draw_spot(run, stream_nan, drawn_tensor(run));
           Inputs inputs = run.inputs();
           element(inputs, spot) = std::numeric_limits<float>::quiet_NaN();
           const Launch launch = run.launch(run.the_case(), inputs);
           const auto is_hit = [&](OutputIndex output, auto... at) {
             return depends_on(p, spot, output, at...);
           };
           // Where all weights may vanish a row is as good as empty: nothing can be proven.
           const auto is_bounded = [&](OutputIndex output, auto... at) {
             return std::isfinite(run.answer()[output].bound.at(at...));
           };
           const Check reached =
               check_reached(run, launch.outputs, [&](OutputIndex output, auto... at) {
                 return is_bounded(output, at...) && is_hit(output, at...);
               });
           if (reached.status == Check::Status::failed || !run.kernel().ignores_hidden_nan) {
             return reached;
           }
           return check_agree(run.kernel(), launch.outputs, run.base().outputs,
                              agreement_of(run, {.neighbours = true}),
                              "a NaN input reached an element that does not depend on it",
                              [&](OutputIndex output, auto... at) {
                                return is_bounded(output, at...) && !is_hit(output, at...);
                              });
         }}};

}  // namespace law_nan_stays_in_its_rows
}  // namespace attest
