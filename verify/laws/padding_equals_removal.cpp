#include <optional>

#include "core/operations/forward.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_padding_equals_removal {

/// An entry with queries and hidden keys, drawn by the case's seed. Only without a mask by
/// position: removal moves the keys behind.
std::optional<std::int64_t> drawn_entry(const Run& run) {
  const Problem& p = run.problem();
  if (p.padding_seed == 0 || p.mask != Mask::none) return std::nullopt;
  return drawn_entry(run, stream_removed_padding, [&](std::int64_t b) {
    return p.query_len_of(b) > 0 && visible_key_count(p, b, 0) < p.key_len_of(b);
  });
}

DenseEntry as_dense(Run& run, std::int64_t b) {
  return dense_entry(run.the_case(), run.inputs(), b, visible_keys_of(run.problem(), b, 0));
}

const LawRegistration registration{
    {.name = "padding_equals_removal",
     .statement = "hiding keys by padding gives the answer of the problem without them, within the "
                  "sum of the bounds",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&forward_operation},
     .applies =
         [](Run& run) {
           const auto b = drawn_entry(run);
           return b && !why_unsupported(run.kernel(), as_dense(run, *b).the_case);
         },
     .check =
         [](Run& run) {
           const std::int64_t b = *drawn_entry(run);
           return check_dense_entry(run, as_dense(run, b), b,
                                    "with keys hidden the answer is not that without them");
         }}};

}  // namespace law_padding_equals_removal
}  // namespace attest
