#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "core/base/error.hpp"
#include "core/run/registry.hpp"
#include "gpu/model/cost_model.hpp"
#include "gpu/simt/trace_kernel.hpp"

namespace attest {
namespace {

/// Bytes of global memory that all blocks load, counted as they run.
std::int64_t loaded_bytes(const KernelInfo& kernel, const Problem& problem, const Plan& plan) {
  std::int64_t bytes = 0;
  for (const KernelTrace& trace : trace_kernel(kernel, problem, plan)) {
    bytes += trace.total(MemorySpace::global, AccessKind::read).bytes;
  }
  return bytes;
}

/// The first Plan with `query_tile`.
Plan plan_with(const KernelInfo& kernel, const Problem& problem, std::int64_t query_tile) {
  for (const Plan& plan : kernel.plans(problem)) {
    if (plan.query_tile == query_tile) return plan;
  }
  throw InvalidInput(kernel.name + " has no Plan with that query tile");
}

TEST(TileTraffic, TilesOfFa3LoadTheKeyTilesThatTheirRowsSeeWhicheverIsTheShortOne) {
  const KernelInfo* kernel = find_kernel("fa3_wgmma", Executor::simt);
  ASSERT_NE(kernel, nullptr);
  // Of the three warpgroups of 64 rows of a tile none, one and two are missing.
  for (const std::string lengths : {"n321", "n320", "n448", "q320 k400", "q250 k200"}) {
    for (const std::string rest : {" d64 fp16 ", " d128 fp16 "}) {
      for (const std::string mask :
           {"none", "causal_top_left", "causal_bottom_right", "window_top_left left0 right0",
            "window_top_left left64 right5", "window_bottom_right left130",
            "window_bottom_right left1 right63"}) {
        const Problem problem = problem_from_string("b1 h1 " + lengths + rest + mask);
        const Plan plan = plan_with(*kernel, problem, 192);
        const Traffic law =
            traffic_without_cache(kernel->dataflow, problem, tiling_of(*kernel, problem, plan));
        EXPECT_EQ(static_cast<double>(loaded_bytes(*kernel, problem, plan)), law.read())
            << to_string(problem) << ", " << to_string(plan);
      }
    }
  }
}

TEST(TileTraffic, QueriesThatDoNotStayAreLoadedOnceAKeyTile) {
  const KernelInfo* kernel = find_kernel("f_controlled_pairs", Executor::simt);
  ASSERT_NE(kernel, nullptr);
  for (const std::string mask : {"none", "causal_top_left", "causal_bottom_right"}) {
    const Problem problem = problem_from_string("h2 q70 k100 d40 fp32 " + mask);
    std::int64_t counted = 0;
    for (const Plan& plan : kernel->plans(problem)) {
      if (plan.query_reads != QueryReads::every_tile) continue;
      const Traffic law =
          traffic_without_cache(kernel->dataflow, problem, tiling_of(*kernel, problem, plan));
      EXPECT_EQ(static_cast<double>(loaded_bytes(*kernel, problem, plan)), law.read())
          << to_string(problem) << ", " << to_string(plan);
      Plan staying = plan;
      staying.query_reads = 0;
      EXPECT_GT(loaded_bytes(*kernel, problem, plan), loaded_bytes(*kernel, problem, staying));
      ++counted;
    }
    EXPECT_GE(counted, 3);
  }
}

}  // namespace
}  // namespace attest
