#include "experiments/explain/launch_counts.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>

#include "experiments/explain/access_lines.hpp"
#include "experiments/explain/explanation.hpp"
#include "experiments/study/language/model_values.hpp"
#include "gpu/simt/trace_kernel.hpp"

namespace attest {
namespace {

using Measurements = std::vector<Measurement>;

void add_counters(const ProblemCounters& counters, Measurements& found) {
  AccessCounts shared, global;
  double fmas = 0, barriers = 0;
  for (const KernelTrace& trace : counters.kernels) {
    shared += trace.total(MemorySpace::shared);
    global += trace.total(MemorySpace::global);
    fmas += static_cast<double>(trace.fmas);
    barriers += static_cast<double>(trace.barriers);
  }
  const auto add = [&](const char* name, double value, const char* unit) {
    found.push_back({name, value, unit});
  };
  add("shared_requests", static_cast<double>(shared.requests), "1");
  add("shared_passes", static_cast<double>(shared.passes), "1");
  add("bank_conflicts", static_cast<double>(shared.passes - shared.ideal_passes), "1");
  add("bank_conflict_ways", shared.ways(), "1");
  add("global_requests", static_cast<double>(global.requests), "1");
  add("global_sectors", static_cast<double>(global.sectors), "1");
  add("sectors_per_request", global.sectors_per_request(), "1");
  add("fmas", fmas, "1");
  add("barriers", barriers, "1");
  const SharedPasses passes = shared_passes(counters);
  add("shared_passes_merged", passes.merged, "1");
  add("counts_are_exact", counters.is_exact ? 1 : 0, "1");
}

std::string unit_of(Dimension dimension) {
  return dimension == Dimension::bytes ? "B" : dimension == Dimension::time ? "ms" : "1";
}

Measurements values_of(const KernelInfo& kernel, const Problem& problem, const Plan& plan,
                       const GpuModel& gpu) {
  const ExpansionContext context{.gpu = &gpu, .launches_of = observe_launches};
  const Case subject{.kernel = kernel.name, .problem = problem, .plan = plan};
  ModelValues values(kernel, subject, context);
  Measurements found;
  for (const ModelValueName& name : model_value_names()) {
    const Value value = values.value(name.name);
    if (value.kind != Value::Kind::number) continue;
    found.push_back({std::string(name.name), value.mid, unit_of(name.dimension)});
  }
  return found;
}

Measurements counts_of(const Explanation& e) {
  Measurements found;
  const auto add = [&](const char* name, double value, const char* unit) {
    found.push_back({name, value, unit});
  };
  add("exponentials", e.exponentials, "1");
  if (e.law) add("uncached_bytes", e.law->total(), "B");
  if (e.l2) {
    add("dram_bytes", static_cast<double>(e.l2->counts.dram_read + e.l2->counts.dram_written), "B");
    add("l2_hit_rate", e.l2->counts.read_hit_rate(), "1");
  }
  if (e.counters) add_counters(*e.counters, found);
  constexpr double ms = 1e3;
  add("time_floor", e.floors.largest() * ms, "ms");
  add("time_floor.arithmetic", e.floors.flops * ms, "ms");
  add("time_floor.memory", e.floors.dram * ms, "ms");
  add("time_floor.l2", e.floors.l2 * ms, "ms");
  add("time_floor.exponentials", e.floors.exponentials * ms, "ms");
  if (e.counters) add("time_floor.shared", e.floors.shared * ms, "ms");
  return found;
}

}  // namespace

LaunchModel launch_counts(const GpuModel& gpu) {
  return [&gpu, memo = std::make_shared<TraceMemo>()](const KernelInfo& kernel,
                                                      const Problem& problem, const Plan& plan) {
    Measurements found = values_of(kernel, problem, plan, gpu);
    found.push_back({"peak_flops", gpu.peak_flops(problem.element_type), "FLOP/s"});
    found.push_back({"peak_bandwidth", gpu.dram_bytes_per_s, "B/s"});
    if (kernel.executor == Executor::gpu) return found;
    const Explanation e = explain(kernel, problem, plan, gpu, memo.get());
    if (e.why_not_run.empty()) std::ranges::move(counts_of(e), std::back_inserter(found));
    return found;
  };
}

}  // namespace attest
