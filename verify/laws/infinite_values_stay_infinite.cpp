#include <algorithm>
#include <cmath>
#include <limits>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/oracle.hpp"
#include "verify/cases/planting.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_infinite_values_stay_infinite {

/// True if the weight that a correct kernel computes for `key`, which the row sees, is above 0 at
/// every step, and so its product with an infinity that infinity. Follows steps 2 and 5 of
/// cpu_reference/forward/error_bound.hpp; the row has finite bounds.
bool weight_survives(Run& run, const PrecisionPlan& precision, const Magnitudes& magnitudes,
                     std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t key) {
  const OracleRow<double> row = oracle_row<double>(run.problem(), run.inputs(), b, h, n);
  const auto keys = static_cast<double>(row.keys.size());
  const BoundConstants c = bound_constants(precision, run.problem(),
                                           static_cast<std::int64_t>(row.keys.size()), magnitudes);
  double largest = -std::numeric_limits<double>::infinity(), magnitude = 0;
  for (std::size_t j = 0; j < row.keys.size(); ++j) {
    const double delta = score_error(c, row.scores[j], row.absolute_scores[j]);
    largest = std::max(largest, row.scores[j] + delta);
    magnitude = std::max(magnitude, std::abs(row.scores[j]) + delta);
  }
  const auto j = static_cast<std::size_t>(std::ranges::find(row.keys, key) - row.keys.begin());
  const double delta = score_error(c, row.scores[j], row.absolute_scores[j]);
  const double error = log_weight_error(c, row.scores[j], delta, largest, magnitude);
  // No factor on the way is smaller than the product of all of them, but for what a reference that
  // lags leaves above 1, and for a sum of at most 2 n weights where it divides before the end.
  const double least =
      std::exp(row.scores[j] - largest - error - c.lag) / (c.divides_early ? 2 * keys : 1.0);
  // Of normal fp32 numbers an exponential has its relative error; P holds its subnormals too.
  return least >
         std::max(2 * fp32_arithmetic.min_normal, format_of(precision.weight_format).min_subnormal);
}

const LawRegistration registration{
    {.name = "infinite_values_stay_infinite",
     .statement = "an infinity in V makes its column of the rows that see it that infinity (or "
                  "NaN where the weight may underflow or V is multiplied in parts; never a finite "
                  "number, but from kernels that leave out parts whose weights underflow) and "
                  "changes no other bit of kernels that keep a hidden NaN out",
     .cost = Law::Cost::more_launches,
     .operations = {&forward_operation},
     .needs_own_values = true,
     .applies =
         [](Run& run) {
           return !has_modifications(run.problem()) && run.problem().key_len > 0 &&
                  run.problem().query_len > 0;
         },
     .check =
         [](Run& run) {
           const Problem& p = run.problem();
           const Spot spot = draw_spot(run, stream_infinite_values, Spot::Where::value);
           const float infinity = std::copysign(
               std::numeric_limits<float>::infinity(),
               random_below(run.the_case().inputs.seed, stream_infinite_values, 0, 2) == 0 ? 1.0F
                                                                                           : -1.0F);
           Inputs inputs = run.inputs();
           element(inputs, spot) = infinity;
           const Launch launch = run.launch(run.the_case(), inputs);
           const PrecisionPlan precision =
               run.kernel().precision(p, run.the_case().plan).as<PrecisionPlan>();
           // Of parts the first is the infinity, and what it leaves is infinity minus infinity.
           const bool has_parts = precision.value_parts.format != Parts::Format::whole;
           const Magnitudes magnitudes = magnitudes_of(run.inputs());
           const Answer& answer = run.answer();
           const auto is_hit = [&](std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d) {
             return d == spot.d && sees(p, spot, b, h, n);
           };
           const Check arrived = check_rows(p, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
             if (!is_hit(b, h, n, spot.d)) return Check::passed();
             // Where all weights may vanish a row is as good as empty: nothing can be proven.
             if (!std::isfinite(answer[forward::o].bound.at(b, h, n, spot.d)))
               return Check::passed();
             const float got = launch.outputs[forward::o].at(b, h, n, spot.d);
             if (got == infinity) return Check::passed();
             const double left_out = std::abs(got - answer[forward::o].value.at(b, h, n, spot.d));
             if (run.kernel().drops_vanished_parts &&
                 left_out <= answer[forward::o].bound.at(b, h, n, spot.d) &&
                 !weight_survives(run, precision, magnitudes, b, h, n, spot.row)) {
               return Check::passed();
             }
             if (std::isnan(got) &&
                 (has_parts || !weight_survives(run, precision, magnitudes, b, h, n, spot.row))) {
               return Check::passed();
             }
             return Check::failed_at("O",
                                     {.index = {b, h, n, spot.d}, .got = got, .want = infinity},
                                     "an infinite value that the row sees did not arrive");
           });
           if (arrived.status == Check::Status::failed || !run.kernel().ignores_hidden_nan) {
             return arrived;
           }
           return check_agree(
               run.kernel(), launch.outputs, run.base().outputs, agreement_of(run, {}),
               "an infinite value reached an element that does not depend on it",
               [&](OutputIndex output, std::int64_t b, std::int64_t h, std::int64_t n,
                   std::int64_t d) {
                 const bool is_reached = output == forward::o && is_hit(b, h, n, d);
                 return std::isfinite(answer[output].bound.at(b, h, n, d)) && !is_reached;
               });
         }}};

}  // namespace law_infinite_values_stay_infinite
}  // namespace attest
