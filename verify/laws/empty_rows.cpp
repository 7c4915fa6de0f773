#include <limits>

#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"
#include "verify/judge/law.hpp"

namespace attest {
namespace law_empty_rows {

bool has_empty_rows(Run& run) {
  const Problem& problem = run.problem();
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t query = 0; query < problem.query_len_of(b); ++query) {
      if (visible_key_count(problem, b, query) == 0) return true;
    }
  }
  return false;
}

const LawRegistration registration{
    {.name = "empty_rows",
     .statement = "a row that sees no key has O exactly 0 and LSE -infinity",
     .operations = {&forward_operation, &quantised_operation},
     .applies = has_empty_rows,
     .check = [](Run& run) {
       const Problem& problem = run.problem();
       const Outputs& outputs = run.base().outputs;
       constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
       return check_rows(problem, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
         if (visible_key_count(problem, b, n) > 0) return Check::passed();
         const float lse = outputs[forward::lse].at(b, h, n, 0);
         if (run.kernel().gives(forward::lse) && lse != minus_infinity) {
           return Check::failed_at("LSE",
                                   {.index = {b, h, n, 0}, .got = lse, .want = minus_infinity},
                                   "LSE of an empty row is not -infinity");
         }
         for (std::int64_t d = 0; d < problem.output_dim(); ++d) {
           const float o = outputs[forward::o].at(b, h, n, d);
           if (o == 0.0F) continue;
           return Check::failed_at("O", {.index = {b, h, n, d}, .got = o, .want = 0.0},
                                   "O of an empty row is not 0");
         }
         return Check::passed();
       });
     }}};

}  // namespace law_empty_rows
}  // namespace attest
