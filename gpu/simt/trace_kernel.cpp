#include "gpu/simt/trace_kernel.hpp"

#include <fmt/format.h>

#include <exception>

#include "core/attention/operation.hpp"
#include "core/attention/storage.hpp"
#include "core/base/error.hpp"
#include "core/inputs/input_family.hpp"
#include "core/records/case.hpp"
#include "core/run/arguments.hpp"
#include "core/run/index_arrays.hpp"
#include "core/run/session.hpp"
#include "gpu/simt/simt_device.hpp"

namespace attest {
namespace {

Case case_of(const KernelInfo& kernel, const Problem& problem, const Plan& plan,
             const Paging& paging) {
  Case c{.kernel = kernel.name, .problem = problem, .plan = plan};
  c.layouts.paging = paging;
  return c;
}

void require_support(const KernelInfo& kernel, const Case& c) {
  validate(c.problem);
  if (kernel.executor != Executor::simt)
    throw InvalidInput(
        fmt::format("{} is built for executor {}; launches are traced on executor simt",
                    kernel.name, name_of(kernel.executor)));
  if (const auto reason = why_unsupported(kernel, c))
    throw InvalidInput(fmt::format("{} cannot run {} with {}: {}", kernel.name,
                                   to_string(c.problem), to_string(c.plan), *reason));
}

}  // namespace

std::vector<LaunchConfiguration> observe_launches(const KernelInfo& kernel, const Problem& problem,
                                                  const Plan& plan, const LaunchSetting& setting) {
  const Paging& paging = setting.paging;
  require_support(kernel, case_of(kernel, problem, plan, paging));
  simt::SimtDevice device(
      simt::TraceOptions{.is_dry = true, .resident_blocks = setting.resident_blocks});
  Arguments arguments;
  arguments.problem = problem;
  arguments.plan = plan;
  for_each_tensor(*problem.operation, [&](const TensorSpec& tensor, auto index) {
    if (!paging.is_used() || tensor.rows != Rows::keys) {
      arguments[index].strides = strides_of(tensor.shape(problem), {});
      return;
    }
    const Shape pool = stored_shape(tensor, problem, paging);
    arguments[index].strides =
        paging.joins_kv ? joined_pool(pool, {}).strides : strides_of(pool, {});
  });
  IndexArrays indices;
  if (paging.is_used()) indices.upload(problem, paging, device, arguments);
  kernel.launch(arguments, device);
  indices.release(device);
  return device.tracer()->launches();
}

std::vector<KernelTrace> trace_kernel(const KernelInfo& kernel, const Problem& problem,
                                      const Plan& plan, const simt::BlockSample& sample,
                                      const Paging& paging) {
  const Case c = case_of(kernel, problem, plan, paging);
  require_support(kernel, c);
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
