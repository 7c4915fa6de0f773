// Three laws about memory; the session's guards and poison decide them.
#include "verify/property.hpp"

namespace attest {
namespace {

Check first_of(const std::vector<std::string>& sentences) {
  return sentences.empty() ? Check::passed() : Check::failed(sentences.front());
}

const PropertyRegistration guards{
    {.name = "guards_untouched",
     .statement = "no byte outside the tensors, or in the gaps of their strides, changes",
     .applies = {},
     .check = [](Run& run) { return first_of(run.base().memory.damaged_guards); }}};

const PropertyRegistration outputs{
    {.name = "outputs_written",
     .statement = "every element of O and LSE is written",
     .applies = {},
     .check = [](Run& run) { return first_of(run.base().memory.unwritten_outputs); }}};

const PropertyRegistration inputs{
    {.name = "inputs_unmodified",
     .statement = "Q, K and V are the same after the launch",
     .applies = {},
     .check = [](Run& run) { return first_of(run.base().memory.modified_inputs); }}};

}  // namespace
}  // namespace attest
