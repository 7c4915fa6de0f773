#include <fmt/format.h>

#include "core/inputs/input_family.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/other_indices.hpp"

namespace attest {
namespace law_indices_may_change {

/// Other content of the arrays, and the inputs that go with it: those of a backward pass have O and
/// LSE of the lengths.
struct Variation {
  std::string_view what;
  Case the_case;
  Inputs inputs;
};

std::vector<Variation> variations_of(Run& run) {
  std::vector<Variation> variations;
  for (const IndexKind& kind : index_kinds()) {
    auto other =
        with_other_indices(run, [&](const IndexKind& one) { return one.name == kind.name; });
    if (!other) continue;
    Inputs inputs = make_inputs(other->problem, other->inputs);
    variations.push_back({kind.name, *std::move(other), std::move(inputs)});
  }
  return variations;
}

bool is_any(const IndexKind& /*kind*/) {
  return true;
}

const LawRegistration registration{
    {.name = "indices_may_change",
     .statement =
         "a launch of the same sizes that finds other lengths, other hidden keys or another page "
         "table where those of the one before lay answers for these, and then the case has its "
         "bits again",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .applies = [](Run& run) { return with_other_indices(run, is_any).has_value(); },
     .check =
         [](Run& run) {
           const std::vector<Variation> variations = variations_of(run);
           const Call mine{run.the_case(), run.inputs()};
           std::vector<Call> calls{mine};
           for (const Variation& other : variations)
             calls.push_back({other.the_case, other.inputs});
           calls.push_back(mine);
           const std::vector<Outputs> outputs = run.launch_in_turn(calls);
           for (std::size_t i = 0; i < variations.size(); ++i) {
             const Variation& other = variations[i];
             const Answer answer =
                 run.answer_to(other.the_case.problem, other.the_case.plan, other.inputs);
             const std::string failure =
                 fmt::format("a launch of the same sizes with other {}, {}, has a wrong answer",
                             other.what, to_string(other.the_case.problem));
             const Check check = check_answer(run.kernel(), outputs[i + 1], answer, failure);
             if (check.status == Check::Status::failed) return check;
           }
           return check_agree(
               run.kernel(), outputs.back(), run.base().outputs, agreement_of(run, {}),
               "after launches with other lengths, hidden keys or pages the case has "
               "another answer");
         }}};

}  // namespace law_indices_may_change
}  // namespace attest
