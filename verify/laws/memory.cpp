// Three laws about memory; the session's guards and poison decide them.
#include "verify/judge/law.hpp"

namespace attest {
namespace law_memory {

Check first_of(const std::vector<std::string>& sentences) {
  return sentences.empty() ? Check::passed() : Check::failed(sentences.front());
}

const LawRegistration guards{
    {.name = "guards_untouched",
     .statement = "no byte outside the tensors, or in the gaps of their strides, changes",
     .applies = {},
     .check = [](Run& run) { return first_of(run.base().memory.damaged_guards); }}};

const LawRegistration outputs{
    {.name = "outputs_written",
     .statement = "every element of O and LSE is written",
     .applies = {},
     .check = [](Run& run) { return first_of(run.base().memory.unwritten_outputs); }}};

const LawRegistration inputs{
    {.name = "inputs_unmodified",
     .statement = "Q, K and V are the same after the launch",
     .applies = {},
     .check = [](Run& run) { return first_of(run.base().memory.modified_inputs); }}};

}  // namespace law_memory
}  // namespace attest
