#include <limits>

#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"
#include "verify/judge/law.hpp"

namespace attest {
namespace law_empty_rows {

/// Inputs of quantised_operation have other numbers, and no bias.
bool sees_no_key(Run& run, std::int64_t b, std::int64_t h, std::int64_t n) {
  const Problem& problem = run.problem();
  if (problem.bias == Bias::none) return visible_key_count(problem, b, n) == 0;
  return forward::keys_of_row(problem, run.inputs(), b, h, n).empty();
}

bool has_empty_rows(Run& run) {
  const Problem& problem = run.problem();
  const std::int64_t heads = problem.bias == Bias::none ? 1 : problem.query_heads;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t query = 0; query < problem.query_len_of(b); ++query) {
      for (std::int64_t h = 0; h < heads; ++h) {
        if (sees_no_key(run, b, h, query)) return true;
      }
    }
  }
  return false;
}

const LawRegistration registration{
    {.name = "empty_rows",
     .statement = "a row that sees no key has O exactly 0, or its residual, and LSE -infinity, or "
                  "its sink",
     .operations = {&forward_operation, &quantised_operation},
     .applies = has_empty_rows,
     .check = [](Run& run) {
       const Problem& problem = run.problem();
       const Outputs& outputs = run.base().outputs;
       return check_rows(problem, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
         if (!sees_no_key(run, b, h, n)) return Check::passed();
         const bool exists = n < problem.query_len_of(b);
         const float want = exists ? forward::sink_of(problem, run.inputs(), h)
                                   : -std::numeric_limits<float>::infinity();
         const float lse = outputs[forward::lse].at(b, h, n, 0);
         if (run.kernel().gives(forward::lse) && lse != want) {
           return Check::failed_at("LSE", {.index = {b, h, n, 0}, .got = lse, .want = want},
                                   "LSE of an empty row is not -infinity, or its sink");
         }
         for (std::int64_t d = 0; d < problem.output_dim(); ++d) {
           const float o = outputs[forward::o].at(b, h, n, d);
           const float residual =
               exists ? forward::residual_of(problem, run.inputs(), b, h, n, d) : 0.0F;
           if (o == residual) continue;
           return Check::failed_at("O", {.index = {b, h, n, d}, .got = o, .want = residual},
                                   "O of an empty row is not 0, or its residual");
         }
         return Check::passed();
       });
     }}};

}  // namespace law_empty_rows
}  // namespace attest
