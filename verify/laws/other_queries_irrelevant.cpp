#include <algorithm>
#include <cmath>

#include "core/attention/element_type.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_other_queries_irrelevant {

/// Half of the rows keep their query.
bool keeps_query(const Run& run, std::int64_t b, std::int64_t h, std::int64_t n) {
  const Problem& p = run.problem();
  const auto row = static_cast<std::uint64_t>((b * p.query_heads + h) * p.query_len + n);
  return random_below(run.the_case().inputs.seed, stream_other_queries, row, 2) == 0;
}

/// What the other queries are multiplied by: 32, so that their scores outgrow whatever their rows
/// were scaled by before, or less where the format would not hold them. -1 where heads may be
/// scaled by their largest element.
float factor_for(Run& run) {
  const PrecisionPlan plan =
      run.kernel().precision(run.problem(), run.the_case().plan).as<PrecisionPlan>();
  if (may_scale_heads(run.kernel(), plan.score_parts)) return -1.0F;
  float largest = 0;
  for (const float x : run.inputs()[forward::q].values()) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  const double room = format_of(run.problem().element_type).max_finite / 2;
  float factor = 32;
  while (factor > 1 && largest * static_cast<double>(factor) > room) factor /= 2;
  return factor > 1 ? factor : -1.0F;
}

Inputs with_other_queries(Run& run) {
  const Problem& p = run.problem();
  const float factor = factor_for(run);
  Inputs inputs = run.inputs();
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len; ++n) {
        if (keeps_query(run, b, h, n)) continue;
        for (float& x : inputs[forward::q].row(b, h, n)) x *= factor;
      }
    }
  }
  return inputs;
}

Check check_kept_rows(Run& run) {
  const Launch launch = run.launch(run.the_case(), with_other_queries(run));
  return check_agree(run.kernel(), launch.outputs, run.base().outputs,
                     agreement_of(run, {.neighbours = true}),
                     "other queries changed, and a row whose query stayed has another result",
                     [&](OutputIndex, std::int64_t b, std::int64_t h, std::int64_t n,
                         std::int64_t) { return keeps_query(run, b, h, n); });
}

const LawRegistration registration{
    {.name = "other_queries_irrelevant",
     .statement =
         "a row whose query stays keeps its bits, whatever the other queries become: no reference "
         "that it shares with its neighbours, no other's maximum",
     .cost = Law::Cost::more_launches,
     .operations = {&forward_operation},
     .applies = [](Run& run) { return run.problem().rows() > 1 && run.problem().key_len > 0; },
     .check = check_kept_rows}};

}  // namespace law_other_queries_irrelevant
}  // namespace attest
