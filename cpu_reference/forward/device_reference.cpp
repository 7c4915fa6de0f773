#include "cpu_reference/forward/device_reference.hpp"

#include <algorithm>
#include <vector>

#include "core/run/registry.hpp"

namespace attest {
namespace {

constexpr double worth_a_gpu = 0x1p30;

std::vector<DeviceReference>& registry() {
  static std::vector<DeviceReference> references;
  return references;
}

}  // namespace

DeviceReferenceRegistration::DeviceReferenceRegistration(DeviceReference reference) {
  registry().push_back(std::move(reference));
}

const DeviceReference* find_device_reference(Executor executor) {
  const auto at = std::ranges::find(registry(), executor, &DeviceReference::executor);
  return at == registry().end() ? nullptr : &*at;
}

double reference_work(const Problem& problem) {
  return forward_flops(problem) / 4;
}

Answer best_answer(const Problem& problem, const Inputs& inputs, const PrecisionPlan& precision) {
  const DeviceReference* const gpu = find_device_reference(Executor::gpu);
  if (gpu != nullptr && gpu->covers(problem) && reference_work(problem) >= worth_a_gpu &&
      why_unavailable(Executor::gpu).empty()) {
    const auto device = make_device(Executor::gpu);
    return gpu->answer(*device, problem, inputs, precision);
  }
  return exact_answer(problem, inputs, precision);
}

}  // namespace attest
