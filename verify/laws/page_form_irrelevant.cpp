#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/inputs/random.hpp"
#include "verify/cases/paging.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_page_form_irrelevant {

/// Another page size and the other form of the table; K and V joined where they were apart, and the
/// reverse.
Case reformed(const Run& run) {
  Case c = run.the_case();
  Paging& paging = c.layouts.paging;
  std::vector<std::int64_t> sizes = run.kernel().layout_needs.page_sizes;
  if (sizes.empty()) sizes = {1, 3, 8, 16, 48, 64, 128};
  std::erase(sizes, paging.page_size);
  std::erase_if(sizes, [&](std::int64_t size) { return has_dear_pages(c.problem, size); });
  if (!sizes.empty()) {
    const auto count = static_cast<std::int64_t>(sizes.size());
    paging.page_size =
        sizes[static_cast<std::size_t>(random_below(c.inputs.seed, stream_page_size, 0, count))];
  }
  // Many pages of one key are little memory; of another size they are not.
  paging.spare_pages = std::min<std::int64_t>(paging.spare_pages, 3);
  if (!run.kernel().layout_needs.tables) {
    paging.table = paging.table == TableForm::dense ? TableForm::csr : TableForm::dense;
  }
  paging.joins_kv = !paging.joins_kv;
  c.layouts = fitted(run.kernel().layout_needs, c.problem, c.layouts);
  return c;
}

const LawRegistration registration{
    {.name = "page_form_irrelevant",
     .statement = "the size of pages, the form of the table and whether K and V lie in one pool "
                  "change no bit",
     .cost = Law::Cost::more_launches,
     .applies =
         [](Run& run) {
           return run.the_case().layouts.paging.is_used() &&
                  !why_unsupported(run.kernel(), reformed(run));
         },
     .check =
         [](Run& run) {
           const Case other = reformed(run);
           return check_variation(
               run, other, {.addresses = true, .sharing = true},
               fmt::format("{} gave another answer", to_string(other.layouts.paging)));
         }}};

}  // namespace law_page_form_irrelevant
}  // namespace attest
