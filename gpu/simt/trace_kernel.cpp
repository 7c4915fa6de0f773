#include "gpu/simt/trace_kernel.hpp"

#include <fmt/format.h>

#include <exception>

#include "core/attention/operation.hpp"
#include "core/base/error.hpp"
#include "core/inputs/input_family.hpp"
#include "core/records/case.hpp"
#include "core/run/arguments.hpp"
#include "core/run/session.hpp"
#include "gpu/simt/simt_device.hpp"

namespace attest {
namespace {

void require_support(const KernelInfo& kernel, const Problem& problem, const Plan& plan) {
  validate(problem);
  if (kernel.executor != Executor::simt)
    throw InvalidInput(
        fmt::format("{} is built for executor {}; launches are traced on executor simt",
                    kernel.name, name_of(kernel.executor)));
  if (const auto reason = why_unsupported(kernel, problem, plan))
    throw InvalidInput(fmt::format("{} cannot run {} with {}: {}", kernel.name, to_string(problem),
                                   to_string(plan), *reason));
}

}  // namespace

std::vector<LaunchConfiguration> observe_launches(const KernelInfo& kernel, const Problem& problem,
                                                  const Plan& plan,
                                                  const ResidentBlocks& resident_blocks) {
  require_support(kernel, problem, plan);
  simt::SimtDevice device(simt::TraceOptions{.is_dry = true, .resident_blocks = resident_blocks});
  Arguments arguments;
  arguments.problem = problem;
  arguments.plan = plan;
  for_each_tensor(*problem.operation, [&](const TensorSpec& tensor, auto index) {
    arguments[index].strides = strides_of(tensor.shape(problem), {});
  });
  kernel.launch(arguments, device);
  return device.tracer()->launches();
}

std::vector<KernelTrace> trace_kernel(const KernelInfo& kernel, const Problem& problem,
                                      const Plan& plan, const simt::BlockSample& sample) {
  require_support(kernel, problem, plan);
  Case c;
  c.kernel = kernel.name;
  c.problem = problem;
  c.plan = plan;
  simt::SimtDevice device(simt::TraceOptions{.sample = sample});
  Session session(kernel, c, make_inputs(problem, c.inputs), device);
  session.launch();
  return device.tracer()->traces();
}

std::vector<KernelTrace> TraceMemo::get(const std::string& key,
                                        const std::function<std::vector<KernelTrace>()>& make) {
  std::promise<std::vector<KernelTrace>> promise;
  std::shared_future<std::vector<KernelTrace>> future;
  bool is_mine = false;
  {
    const std::scoped_lock lock(mutex_);
    const auto [found, is_new] = made_.try_emplace(key);
    if (is_new) found->second = promise.get_future().share();
    future = found->second;
    is_mine = is_new;
  }
  if (is_mine) {
    try {
      promise.set_value(make());
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  }
  return future.get();
}

}  // namespace attest
