#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "core/records/case.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "core/run/session.hpp"

// How many random cases a second one core verifies: make the session, launch with every access
// checked, read back. No reference is computed. Sizes are drawn uniformly from verify's default
// range.
namespace attest {
namespace {

struct Prepared {
  Case c;
  Inputs inputs;
};

std::int64_t between(std::uint64_t i, std::uint64_t what, std::int64_t low, std::int64_t high) {
  return low + random_below(1, what, i, high - low + 1);
}

Prepared draw_case(const KernelInfo& kernel, std::uint64_t i) {
  Prepared p;
  p.c.kernel = kernel.name;
  Problem& problem = p.c.problem;
  problem.query_heads = between(i, 0, 1, 4);
  problem.kv_heads = problem.query_heads;
  problem.query_len = between(i, 1, 1, 160);
  problem.key_len = between(i, 2, 1, 160);
  problem.head_dim = between(i, 3, 1, 64);
  problem.mask = kernel.masks[static_cast<std::size_t>(
      between(i, 4, 0, static_cast<std::int64_t>(kernel.masks.size()) - 1))];
  problem.scale = default_scale(problem.head_dim);
  const std::vector<Plan> plans = kernel.plans(problem);
  p.c.plan = plans[static_cast<std::size_t>(
      between(i, 5, 0, static_cast<std::int64_t>(plans.size()) - 1))];
  p.c.inputs.seed = i;
  p.c.schedule_seed = i;
  p.inputs = make_inputs(problem, p.c.inputs);
  return p;
}

void run_cases(benchmark::State& state, const std::string& name) {
  constexpr std::uint64_t case_count = 64;
  const KernelInfo* kernel = find_kernel(name, Executor::simt);
  if (kernel == nullptr) {
    state.SkipWithError(("kernel " + name + " is not linked into this program").c_str());
    return;
  }
  std::vector<Prepared> cases;
  for (std::uint64_t i = 0; i < case_count; ++i) cases.push_back(draw_case(*kernel, i));
  const std::unique_ptr<Device> device = make_device(Executor::simt);
  for (auto _ : state) {
    for (const Prepared& p : cases) {
      Session session(*kernel, p.c, p.inputs, *device);
      session.launch();
      benchmark::DoNotOptimize(session.read_outputs());
    }
  }
  const std::vector<Finding> findings = device->take_findings();
  if (!findings.empty()) state.SkipWithError(findings.front().message.c_str());
  state.counters["cases/s"] =
      benchmark::Counter(static_cast<double>(case_count) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(run_cases, k1_naive, std::string("k1_naive"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_cases, k2_coalesced, std::string("k2_coalesced"))
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_cases, k3_sequence_parallel, std::string("k3_sequence_parallel"))
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attest
