#include <fmt/format.h>

#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_unused_slots_irrelevant {

/// Something else in slots and table entries past an entry's length, and in pages of nobody.
Case refilled(const Run& run) {
  Case c = run.the_case();
  Paging& paging = c.layouts.paging;
  const auto choices = static_cast<int>(unused_names().size());
  paging.unused = static_cast<Unused>((static_cast<int>(paging.unused) + 1) % choices);
  paging.spare_pages += 2;
  paging.spare_columns += 3;
  return c;
}

const LawRegistration registration{
    {.name = "unused_slots_irrelevant",
     .statement =
         "slots that hold no key, pages that nobody owns and table entries past an entry's "
         "length change no bit, whatever they hold",
     .cost = Law::Cost::more_launches,
     .applies = [](Run& run) { return run.the_case().layouts.paging.is_used(); },
     .check =
         [](Run& run) {
           return check_variation(run, refilled(run), {.addresses = true},
                                  "what no key uses changed the answer");
         }}};

}  // namespace law_unused_slots_irrelevant
}  // namespace attest
