#include "core/inputs/random.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_entry_gaps_irrelevant {

/// A gap of half a tile, or of more than one.
std::int64_t gap_of(const Run& run) {
  return 1 + random_below(run.the_case().inputs.seed, stream_entry_gap, 0, 150);
}

bool is_packed(const Run& run) {
  return run.problem().length_seed != 0;
}

/// NaN lies in the gaps of inputs; those of outputs keep what they held.
Check check_gaps(Run& run) {
  const Launch launch = run.launch(run.the_case(), run.inputs(), {.entry_gap = gap_of(run)});
  const MemoryReport& memory = launch.memory;
  for (const auto* sentences :
       {&memory.damaged_guards, &memory.unwritten_outputs, &memory.modified_inputs}) {
    if (!sentences->empty()) return Check::failed(sentences->front());
  }
  return check_agree(run.kernel(), launch.outputs, run.base().outputs,
                     agreement_of(run, {.addresses = true}),
                     "rows of nobody between packed entries changed the answer");
}

const LawRegistration registration{
    {.name = "entry_gaps_irrelevant",
     .statement = "rows of nobody between packed entries change no bit and stay as they are",
     .cost = Law::Cost::more_launches,
     .applies =
         [](Run& run) { return is_packed(run) && run.kernel().layout_needs.takes_entry_gaps; },
     .check = check_gaps,
     .declines = [](Run& run) -> std::optional<std::string> {
       if (!is_packed(run) || run.kernel().layout_needs.takes_entry_gaps) return std::nullopt;
       return "it takes no gaps between packed entries";
     }}};

}  // namespace law_entry_gaps_irrelevant
}  // namespace attest
