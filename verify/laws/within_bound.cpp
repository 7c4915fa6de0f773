#include <fmt/format.h>

#include <algorithm>

#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_within_bound {

Check check_bound(Run& run, OutputIndex output) {
  return check_output(
      run.kernel(), output, run.base().outputs, run.answer(),
      fmt::format("{} is outside its error bound", (*run.problem().operation)[output].label));
}

const LawRegistration first{
    {.name = "within_bound",
     .statement = "every element of O, or of the first output of another operation, is within the "
                  "bound that follows from the declared roundings",
     .layer = Layer::bound,
     .applies = [](Run& run) { return run.kernel().gives(OutputIndex{0}); },
     .check = [](Run& run) { return check_bound(run, OutputIndex{0}); }}};

/// Number of the output of that name, if the operation has one beside its first.
std::optional<OutputIndex> later_output(const Operation& operation, std::string_view name) {
  const auto outputs = operation.outputs();
  const auto at = std::ranges::find(outputs, name, &TensorSpec::name);
  if (at == outputs.end() || at == outputs.begin()) return std::nullopt;
  return OutputIndex{static_cast<std::size_t>(at - outputs.begin())};
}

const OutputLawRegistration others{[](const TensorSpec& tensor) {
  const std::string name(tensor.name);
  return Law{.name = name + "_within_bound",
             .statement = fmt::format(
                 "every element of {} is within the bound that follows from the declared roundings",
                 tensor.label),
             .layer = Layer::bound,
             .applies =
                 [name](Run& run) {
                   const Problem& p = run.problem();
                   const auto output = later_output(*p.operation, name);
                   return output && run.kernel().gives(*output) && has_tensor(p, *output);
                 },
             .check =
                 [name](Run& run) {
                   return check_bound(run, *later_output(*run.problem().operation, name));
                 }};
}};

}  // namespace law_within_bound
}  // namespace attest
