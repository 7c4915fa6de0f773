#include "core/run/launch_image.hpp"

namespace attest {

LaunchImage::LaunchImage(const Problem& problem, const Paging& paging, std::int64_t entry_gap) {
  arguments.problem = problem;
  arguments.entry_gap = entry_gap;
  for (const TensorSpec& tensor : problem.operation->inputs()) {
    inputs.push_back(storage_of(tensor, problem, paging, entry_gap));
  }
  for (const TensorSpec& tensor : problem.operation->outputs()) {
    outputs.push_back(storage_of(tensor, problem, paging, entry_gap));
  }
}

void LaunchImage::place_inputs(const std::function<InputArgument(InputIndex)>& place) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const InputIndex index{i}, holder = holder_of(arguments.problem, index);
    if (!has_tensor(arguments.problem, index)) continue;
    arguments[index] = holder == index ? place(index) : arguments[holder];
  }
}

void LaunchImage::place_outputs(const std::function<OutputArgument(OutputIndex)>& place) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const OutputIndex index{i};
    if (has_tensor(arguments.problem, index)) arguments[index] = place(index);
  }
}

Shape LaunchImage::stored_shape(InputIndex index) const {
  const Problem& problem = arguments.problem;
  return attest::stored_shape(inputs.at(index.number), (*problem.operation)[index].shape(problem));
}

Shape LaunchImage::stored_shape(OutputIndex index) const {
  const Problem& problem = arguments.problem;
  return attest::stored_shape(outputs.at(index.number), (*problem.operation)[index].shape(problem));
}

ExtraMemory extra_memory(const KernelInfo& kernel, const Problem& problem, const Plan& plan) {
  return {.workspace = kernel.workspace_bytes ? kernel.workspace_bytes(problem, plan) : 0,
          .counters = kernel.counter_bytes ? kernel.counter_bytes(problem, plan) : 0};
}

}  // namespace attest
