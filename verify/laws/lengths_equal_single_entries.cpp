#include <numeric>
#include <optional>

#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_lengths_equal_single_entries {

/// An entry with queries, drawn by the case's seed, as a dense problem; nullopt when there is none
/// or the kernel does not support it.
std::optional<std::int64_t> drawn_entry(const Run& run) {
  const Problem& p = run.problem();
  if (p.length_seed == 0 || p.padding_seed != 0) return std::nullopt;
  return drawn_entry(run, stream_single_entry,
                     [&](std::int64_t b) { return p.query_len_of(b) > 0; });
}

DenseEntry as_dense(Run& run, std::int64_t b) {
  std::vector<std::int64_t> keys(static_cast<std::size_t>(run.problem().key_len_of(b)));
  std::iota(keys.begin(), keys.end(), 0);
  return dense_entry(run.the_case(), run.inputs(), b, keys);
}

const LawRegistration registration{
    {.name = "lengths_equal_single_entries",
     .statement =
         "an entry of a packed batch has the answer of its own rows and keys alone, within "
         "the sum of the bounds",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&forward_operation, &backward_operation, &quantised_operation},
     .applies =
         [](Run& run) {
           const auto b = drawn_entry(run);
           return b && !why_unsupported(run.kernel(), as_dense(run, *b).the_case);
         },
     .check =
         [](Run& run) {
           const std::int64_t b = *drawn_entry(run);
           return check_dense_entry(run, as_dense(run, b), b,
                                    "an entry of a packed batch differs from the same entry alone");
         }}};

}  // namespace law_lengths_equal_single_entries
}  // namespace attest
