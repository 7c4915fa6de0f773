#include <fmt/format.h>

#include "core/inputs/input_family.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/other_indices.hpp"

namespace attest {
namespace law_graph_may_be_replayed {

/// The case as a replay finds it: other values, hidden keys and pages, and, if the kernel learns
/// them on the device, other lengths.
Case found_by_replay(const Run& run) {
  const auto changes = [&](const IndexKind& kind) {
    return kind.name != "lengths" || run.kernel().reads_lengths;
  };
  Case c = with_other_indices(run, changes).value_or(run.the_case());
  c.inputs.seed = ~c.inputs.seed;
  return c;
}

const LawRegistration registration{
    {.name = "graph_may_be_replayed",
     .statement =
         "a launch recorded in a graph and replayed on other values, hidden keys and pages in the "
         "same memory, and other lengths where the kernel reads them on the device, has the "
         "answer of a launch on these",
     .cost = Law::Cost::more_launches,
     .applies = [](Run& run) { return run.records(); },
     .check =
         [](Run& run) {
           const Case c = found_by_replay(run);
           const Inputs inputs = make_inputs(c.problem, c.inputs);
           std::optional<Outputs> replayed;
           try {
             replayed = run.replay({run.the_case(), run.inputs()}, {c, inputs});
           } catch (const CannotBeRecorded& error) {
             return Check::declined(fmt::format("cannot be captured: {}", error.what()));
           }
           if (!replayed) return Check::declined("no other lengths lie in the same memory");
           const Outputs launched = run.launch(c, inputs).outputs;
           const auto answer = [&] { return run.answer_to(c.problem, c.plan, inputs); };
           return check_agree(run.kernel(), *replayed, launched, agreement_of(run, {}, answer),
                              "a replayed graph has another answer than a launch");
         }}};

}  // namespace law_graph_may_be_replayed
}  // namespace attest
