#include "experiments/study/language/point.hpp"

#include <fmt/format.h>

#include "core/attention/operation.hpp"
#include "core/attention/problem.hpp"
#include "core/base/fnv1a.hpp"
#include "gpu/model/cost_model.hpp"

namespace attest {

std::string point_id(const KernelInfo& kernel, const Case& subject) {
  std::string text =
      fmt::format("{}|{}|{}|{}|{}|{}|{}", kernel.name, name_of(kernel.executor),
                  to_string(subject.problem), to_string(subject.plan), subject.inputs.family,
                  subject.inputs.magnitude, subject.inputs.seed);
  const std::string paging = to_string(subject.layouts.paging);
  if (!paging.empty()) text += "|" + paging;
  return fmt::format("{:016x}", fnv1a(text));
}

std::string_view name_of(Skipped::By by) {
  switch (by) {
    case Skipped::By::kernel:
      return "kernel";
    case Skipped::By::constraint:
      return "constraint";
    case Skipped::By::sampling:
      return "sampling";
  }
  return "";
}

EstimatedWork estimated_work(const Expansion& expansion, const GpuModel& gpu) {
  EstimatedWork sum;
  const auto add = [&](const Problem& problem) {
    const Work work{.flops = problem.operation->flops(problem),
                    .dram_bytes = problem.operation->bytes(problem)};
    sum.flops += work.flops;
    sum.seconds += time_floors(gpu, problem.element_type, work).largest();
  };
  for (const Point& point : expansion.points) {
    add(point.subject.problem);
    for (const Point::BaselineCase& baseline : point.baselines) add(baseline.subject.problem);
  }
  return sum;
}

}  // namespace attest
