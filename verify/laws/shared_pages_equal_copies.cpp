#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_shared_pages_equal_copies {

const LawRegistration registration{
    {.name = "shared_pages_equal_copies",
     .statement = "a prefix whose pages lie in memory once gives the bits of a prefix that every "
                  "entry has for itself",
     .cost = Law::Cost::more_launches,
     .applies =
         [](Run& run) {
           const Paging& paging = run.the_case().layouts.paging;
           return paging.is_used() && run.problem().batch > 1 &&
                  run.problem().shared_keys >= paging.page_size;
         },
     .check =
         [](Run& run) {
           Case other = run.the_case();
           other.layouts.paging.shares_prefix = !other.layouts.paging.shares_prefix;
           return check_variation(run, other, {.addresses = true, .sharing = true},
                                  "shared pages and copies of them differ");
         }}};

}  // namespace law_shared_pages_equal_copies
}  // namespace attest
