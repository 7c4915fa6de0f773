#include <algorithm>
#include <cmath>

#include "core/attention/dq_units.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/backward.hpp"
#include "cpu_reference/backward/oracle.hpp"
#include "cpu_reference/reference.hpp"
#include "verify/judge/law.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_rows_past_the_range_are_nan {

BackwardRoundings roundings_of(const Run& run) {
  return run.kernel().precision(run.problem(), run.the_case().plan).as<BackwardRoundings>();
}

/// All weights are e^2, e^4, e^6 or e^8 times too large.
Inputs with_low_lse(Run& run) {
  const auto by =
      static_cast<float>(2 + 2 * random_below(run.the_case().inputs.seed, stream_range, 0, 4));
  Inputs inputs = run.inputs();
  for (float& x : inputs[backward::lse].values()) x -= by;
  return inputs;
}

/// Largest error from rounding the parts of a row of dQ to units, however far their sum goes.
double of_units(const Problem& problem, const Inputs& inputs, std::int64_t parts, const Shape& at) {
  const auto [b, h, n, unused] = at;
  const auto row = given_row<double>(inputs, b, h, n);
  double gradient = 0, key = 0, value = 0;
  for (const float x : inputs[backward::d_o].row(b, h, n)) gradient += std::abs(x);
  for (const std::int64_t j : visible_keys_of(problem, b, n)) {
    const std::int64_t kv_head = problem.kv_head_of(h);
    for (const float x : inputs[backward::k].row(b, kv_head, j))
      key = std::max<double>(key, std::abs(x));
    for (const float x : inputs[backward::v].row(b, kv_head, j))
      value = std::max<double>(value, std::abs(x));
  }
  // Every |delta| that may be computed is below this one.
  const double size = (gradient * value + 2 * row.absolute_delta) * key * (1 + dq_size_slack);
  return std::abs(problem.scale) * static_cast<double>(parts) * dq_unit(size) / 2;
}

Check check_low_lse(Run& run) {
  const Problem& problem = run.problem();
  const Inputs inputs = with_low_lse(run);
  const Tensor<float> dq = run.launch(run.the_case(), inputs).outputs[backward::dq];
  BackwardRoundings how = roundings_of(run);
  how.sums_dq_in_units = false;  // as if the range had no end
  const InPhase phase(run.clock(), Phase::reference);
  const OutputAnswer answer =
      reference_of(backward_operation).exact(problem, inputs, how)[backward::dq];
  const Shape shape = dq.shape();
  Comparison comparison;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        const double lost = of_units(problem, inputs, how.dq_parts, {b, h, n, 0});
        for (std::int64_t d = 0; d < shape[3]; ++d) {
          WorstElement here{.index = {b, h, n, d},
                            .got = dq.at(b, h, n, d),
                            .want = answer.value.at(b, h, n, d),
                            .bound = answer.bound.at(b, h, n, d) + lost};
          if (std::isnan(here.got)) continue;
          here.ratio = error_over_bound(here.got, here.want, here.bound);
          comparison.add(here);
        }
      }
    }
  }
  return check_of("dQ", comparison,
                  "weights sum to more than 1, and dQ is neither what they give nor NaN");
}

const LawRegistration registration{
    {.name = "rows_past_the_range_are_nan",
     .statement = "where dQ is summed in integers and LSE is so low that a sum may leave their "
                  "range, dQ is NaN or what such weights give: never a number that went round",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&backward_operation},
     .applies =
         [](Run& run) {
           return run.kernel().gives(backward::dq) && roundings_of(run).sums_dq_in_units;
         },
     .check = check_low_lse}};

}  // namespace law_rows_past_the_range_are_nan
}  // namespace attest
