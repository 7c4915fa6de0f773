#include <numeric>

#include "core/operations/forward.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_hidden_chunk_is_absent {

/// Keys at the start that no query of the entry sees.
std::int64_t hidden_keys(const Problem& p, std::int64_t b) {
  return p.query_len_of(b) == 0 ? 0 : p.visible_range(b, 0).begin;
}

/// Entries without queries, or of which every key is seen, show nothing. A row that sees no key has
/// an empty range that says nothing of the others.
std::optional<std::int64_t> entry_of(const Run& run) {
  const Problem& p = run.problem();
  if (p.mask != Mask::window_bottom_right || p.padding_seed != 0) return std::nullopt;
  return drawn_entry(run, stream_hidden_chunk, [&](std::int64_t b) {
    return hidden_keys(p, b) > 0 && p.visible_range(b, 0).size() > 0;
  });
}

/// The entry without the keys that a window leaves behind. Those of a bottom-right window count
/// from the last key, so the others see what they saw.
DenseEntry without_hidden_keys(Run& run, std::int64_t b) {
  const std::int64_t hidden = hidden_keys(run.problem(), b);
  std::vector<std::int64_t> keys(static_cast<std::size_t>(run.problem().key_len_of(b) - hidden));
  std::iota(keys.begin(), keys.end(), hidden);
  return dense_entry(run.the_case(), run.inputs(), b, keys);
}

const LawRegistration registration{
    {.name = "hidden_chunk_is_absent",
     .statement = "keys that a window has left behind for all queries may as well be gone, whole "
                  "chunks and pages of them too",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&forward_operation},
     .applies =
         [](Run& run) {
           const auto b = entry_of(run);
           return b && !why_unsupported(run.kernel(), without_hidden_keys(run, *b).the_case);
         },
     .check =
         [](Run& run) {
           const std::int64_t b = *entry_of(run);
           return check_dense_entry(run, without_hidden_keys(run, b), b,
                                    "keys behind the window changed the answer");
         }}};

}  // namespace law_hidden_chunk_is_absent
}  // namespace attest
