#include "cpu_reference/device_reference.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "core/base/error.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/reference.hpp"

namespace attest {
namespace {

// A function-local static exists before the first registration, whatever the order of
// initialisation.
std::vector<DeviceReference>& registry() {
  static std::vector<DeviceReference> references;
  return references;
}

}  // namespace

DeviceReferenceRegistration::DeviceReferenceRegistration(DeviceReference reference) {
  registry().push_back(std::move(reference));
}

const DeviceReference* find_device_reference(const Operation& operation, Executor executor) {
  const auto at = std::ranges::find_if(registry(), [&](const DeviceReference& reference) {
    return reference.operation == &operation && reference.executor == executor;
  });
  return at == registry().end() ? nullptr : &*at;
}

void check_shapes(const Problem& problem, const Inputs& inputs) {
  const Operation& operation = *problem.operation;
  for (std::size_t i = 0; i < operation.inputs().size(); ++i) {
    const Shape got = i < inputs.size() ? inputs[InputIndex{i}].shape() : Shape{};
    const Shape wanted = operation[InputIndex{i}].shape(problem);
    if (got == wanted || (wanted[3] == 0 && i >= inputs.size())) continue;
    throw InvalidInput(fmt::format("reference of {}: {} has shape [{}], but the problem needs [{}]",
                                   operation.name, operation[InputIndex{i}].name,
                                   fmt::join(got, ", "), fmt::join(wanted, ", ")));
  }
}

double reference_work(const Problem& problem) {
  return forward_flops(problem) / 4;
}

Answer best_answer(const Problem& problem, const Inputs& inputs, const Roundings& roundings) {
  const DeviceReference* const gpu = find_device_reference(*problem.operation, Executor::gpu);
  if (gpu != nullptr && gpu->covers(problem, roundings) &&
      reference_work(problem) >= gpu->worth_a_gpu && why_unavailable(Executor::gpu).empty()) {
    const auto device = make_device(Executor::gpu);
    return gpu->answer(*device, problem, inputs, roundings);
  }
  return reference_of(*problem.operation).exact(problem, inputs, roundings);
}

}  // namespace attest
