#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_page_order_irrelevant {

/// The pages of the pool lie elsewhere.
Case shuffled(const Run& run) {
  Case c = run.the_case();
  c.layouts.paging.shuffle_seed = ~c.layouts.paging.shuffle_seed;
  return c;
}

const LawRegistration registration{
    {.name = "page_order_irrelevant",
     .statement =
         "where the pages of K and V lie in their pool changes no bit, as long as the table "
         "says where",
     .cost = Law::Cost::more_launches,
     .applies = [](Run& run) { return run.the_case().layouts.paging.is_used(); },
     .check =
         [](Run& run) {
           return check_variation(run, shuffled(run), {.addresses = true},
                                  "pages in another order gave another answer");
         }}};

}  // namespace law_page_order_irrelevant
}  // namespace attest
