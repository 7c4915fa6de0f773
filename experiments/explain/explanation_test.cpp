#include "experiments/explain/explanation.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/operations/backward.hpp"
#include "core/run/registry.hpp"
#include "experiments/explain/access_lines.hpp"
#include "experiments/explain/largest_tiles.hpp"
#include "experiments/explain/launch_counts.hpp"
#include "experiments/explain/plan_to_explain.hpp"

namespace attest {
namespace {

const KernelInfo& simulated(const char* name) {
  return *find_kernel(name, Executor::simt);
}

/// True if the counters name this memory.
bool reads(const Explanation& e, std::string_view memory) {
  if (!e.counters) return false;
  return std::ranges::any_of(e.counters->kernels, [&](const KernelTrace& trace) {
    return std::ranges::any_of(access_lines(trace),
                               [&](const AccessLine& line) { return line.memory == memory; });
  });
}

/// Explanation with the kernel's first Plan, unless one is named.
Explanation explained(const char* kernel, const char* problem, const char* plan = nullptr,
                      const char* device = "h200") {
  const Problem asked = problem_from_string(problem);
  return explain(simulated(kernel), asked,
                 plan == nullptr ? simulated(kernel).plans(asked).front() : plan_from_string(plan),
                 gpu_model_from_name(device));
}

double measured(const std::vector<Measurement>& measurements, std::string_view name) {
  const Measurement* found = find_measurement(measurements, name);
  return found == nullptr ? -1 : found->value;
}

TEST(Explanation, CountsTheWorkOfVisiblePairs) {
  const Explanation full = explained("k3_sequence_parallel", "b2 h3 n64 d32", "qt32 kt32");
  // Two products of n x n x d multiply-adds for every head.
  EXPECT_EQ(full.flops_visible, 4.0 * 2 * 3 * 64 * 64 * 32);
  EXPECT_EQ(full.flops_full, full.flops_visible);
  const Explanation causal =
      explained("k3_sequence_parallel", "b2 h3 n64 d32 causal_top_left", "qt32 kt32");
  EXPECT_EQ(causal.flops_visible, 4.0 * 2 * 3 * (64 * 65 / 2) * 32);
  EXPECT_EQ(causal.flops_full, full.flops_full);
}

TEST(Explanation, GradientsAreFiveProductsOverNineTensors) {
  Problem asked = problem_from_string("b2 h4/2 n64 d32 causal_top_left fp16");
  asked.operation = &backward_operation;
  const KernelInfo& kernel = simulated("bwd_simple");
  const Explanation e =
      explain(kernel, asked, kernel.plans(asked).front(), gpu_model_from_name("h200"));
  const double pairs = 2 * 4 * (64 * 65 / 2), q = 2.0 * 2 * 4 * 64 * 32, k = q / 2;
  EXPECT_EQ(e.flops_visible, 10 * pairs * 32);
  EXPECT_EQ(e.flops_full, 10.0 * 2 * 4 * 64 * 64 * 32);
  EXPECT_EQ(e.compulsory_read, 3 * q + 2 * k + 4.0 * 2 * 4 * 64);  // Q, O, dO, K, V, LSE
  EXPECT_EQ(e.compulsory_written, q + 2 * k);
  EXPECT_EQ(e.floors.flops, e.flops_visible / e.gpu->fp16_flops);
  // Delta, the kernel of keys and that of queries; S and dO V^T are formed twice.
  ASSERT_EQ(e.launches.size(), 3U);
  EXPECT_TRUE(e.counters.has_value()) << e.why_no_counters;
}

TEST(Explanation, NothingCanMoveLessThanEveryTensorOnce) {
  for (const char* kernel : {"k1_naive", "k3_sequence_parallel", "k8_padded_queries"}) {
    const Explanation e = explained(kernel, "b2 h3 n128 d64");
    ASSERT_TRUE(e.law && e.l2) << kernel;
    const auto from_memory = static_cast<double>(e.l2->counts.dram_read);
    EXPECT_GE(from_memory, e.compulsory_read) << kernel;
    EXPECT_GE(e.law->read(), from_memory) << kernel;
  }
}

TEST(Explanation, TheLinesOfAKernelAreAllThatItCountedAndNoneIsMoreThanCoalesced) {
  const Explanation e = explained("k3_sequence_parallel", "b1 h1 n96 d64", "qt32 kt32");
  ASSERT_TRUE(e.counters.has_value());
  for (const KernelTrace& trace : e.counters->kernels) {
    AccessCounts shared, global;
    for (const AccessLine& line : access_lines(trace)) {
      (line.space == MemorySpace::shared ? shared : global) += line.counts;
      EXPECT_LE(line.counts.coalescing_efficiency(), 1.0) << line.line;
      EXPECT_GE(line.counts.passes, line.counts.ideal_passes) << line.line;
    }
    EXPECT_EQ(shared.passes, trace.total(MemorySpace::shared).passes);
    EXPECT_EQ(global.sectors, trace.total(MemorySpace::global).sectors);
    EXPECT_EQ(shared.requests, trace.total(MemorySpace::shared).requests);
  }
}

TEST(Explanation, SaysWhyADeviceCannotRunAKernelAndGivesNoTimesOfIt) {
  const Explanation too_old = explained("fa3_wgmma", "b1 h1 n128 d64 bf16", nullptr, "a100");
  EXPECT_NE(too_old.why_not_run.find("it takes instructions of sm_90"), std::string::npos)
      << too_old.why_not_run;
  EXPECT_FALSE(too_old.counters.has_value());
  EXPECT_EQ(too_old.floors.largest(), 0);
}

TEST(Explanation, TextAndJsonTellTheSameNumbers) {
  const Explanation e = explained("k3_sequence_parallel", "b8 h12 n4096 d64", "qt32 kt32");
  const Json json = explanation_json(e);
  EXPECT_EQ(json["work"]["flops_visible"], e.flops_visible);
  EXPECT_EQ(json["launches"].size(), e.launches.size());
  EXPECT_EQ(json["launches"][0]["grid"][0], e.launches[0].configuration.grid.x);
  EXPECT_EQ(json["counters"]["kernels"].size(), e.counters->kernels.size());
  EXPECT_EQ(json["time_floors_s"]["shared_memory"], e.floors.shared);
  const std::string text = explanation_text(e);
  for (const char* part : {"kernel   k3_sequence_parallel", "\nwork\n", "\nlaunches\n",
                           "\ncounters of ", "\ntime at best\n", "<- the largest"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
}

TEST(Explanation, OfWhatSeedsHideCountsVisiblePairsAndSaysThatNoLawOfTrafficHolds) {
  const KernelInfo& kernel = *find_kernel("fa3_wgmma", Executor::simt);
  const Problem p =
      problem_from_string("b2 h2/2 q256 k256 d64 none fp16 lists3 listrows128 listkeys64");
  const Explanation e = explain(kernel, p, kernel.plans(p).front(), gpu_model_from_name("h200"));
  double pairs = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t n = 0; n < p.query_len; ++n) {
      pairs += static_cast<double>(visible_key_count(p, b, n));
    }
  }
  EXPECT_EQ(e.flops_visible, 4.0 * 64 * 2 * pairs);
  EXPECT_GT(e.floors.flops, 0);
  EXPECT_NE(e.why_no_traffic.find("lists"), std::string::npos) << e.why_no_traffic;
}

TEST(PlanToExplain, TakesWhatIsLeftOpenFromThePlanThatIsMostAlike) {
  const KernelInfo& kernel = simulated("k8_padded_queries");
  const Problem problem = problem_from_string("b1 h1 n256 d64");
  const GpuModel& gpu = gpu_model_from_name("h200");
  const std::vector<Plan> offered = kernel.plans(problem);
  for (const Plan& plan : offered)
    EXPECT_EQ(plan_to_explain(kernel, problem, gpu, plan).plan, plan);
  const Plan open = plan_from_string("kt32");
  const ChosenPlan chosen = plan_to_explain(kernel, problem, gpu, open);
  EXPECT_EQ(chosen.plan.key_tile, 32);
  EXPECT_NE(std::ranges::find(offered, chosen.plan), offered.end()) << to_string(chosen.plan);
  EXPECT_EQ(chosen.origin, "");
}

TEST(PlanToExplain, RefusesAFieldThatNoPlanOfTheKernelSets) {
  const KernelInfo& kernel = simulated("k3_sequence_parallel");
  const GpuModel& gpu = gpu_model_from_name("h200");
  EXPECT_THROW((void)plan_to_explain(kernel, problem_from_string("b1 h1 n64 d64"), gpu,
                                     plan_from_string("ping_pong=yes")),
               InvalidInput);
}

TEST(PlanToExplain, TakesAnElementTypeThatTheKernelHasUnlessOneIsNamed) {
  const KernelInfo& kernel = simulated("fa2_mma");
  EXPECT_EQ(problem_to_explain(kernel, "n64 d64").element_type, kernel.element_types.front());
  EXPECT_EQ(problem_to_explain(kernel, "n64 d64 fp32").element_type, ElementType::fp32);
  EXPECT_EQ(problem_to_explain(kernel, "n64 d64 bf16").element_type, ElementType::bf16);
}

TEST(PlanToExplain, TakesAProblemOfTheKernelsOperation) {
  const KernelInfo& kernel = simulated("fa2_mma");
  EXPECT_EQ(problem_to_explain(kernel, "n64 d64 forward").operation, kernel.operation);
  EXPECT_THROW((void)problem_to_explain(kernel, "n64 d64 backward"), InvalidInput);
  EXPECT_THROW((void)problem_to_explain(simulated("bwd_simple"), "forward n64 d64"), InvalidInput);
  EXPECT_EQ(problem_to_explain(simulated("bwd_simple"), "n64 d64").operation->name, "backward");
}

bool has_instructions(const GpuModel& gpu, const KernelInfo& kernel) {
  return gpu.compute_capability >= kernel.compute_capabilities.least &&
         gpu.compute_capability <= kernel.compute_capabilities.most;
}

TEST(PlanToExplain, EveryKernelIsExplainedWhereNothingIsNamedUnlessNoPlanOfItRunsOnTheDevice) {
  std::size_t asked = 0;
  for (const KernelInfo& kernel : all_kernels()) {
    if (kernel.role == KernelRole::mutant || !is_explained(*kernel.operation)) continue;
    const Problem problem = problem_to_explain(kernel, {});
    for (const GpuModel& gpu : all_gpu_models()) {
      ++asked;
      ChosenPlan chosen;
      ASSERT_NO_THROW(chosen = plan_to_explain(kernel, problem, gpu, {})) << kernel.name;
      const std::string why = why_not_run(kernel, problem, chosen.plan, gpu);
      if (why.empty()) continue;
      EXPECT_NE(gpu.name, has_instructions(gpu, kernel) ? "h200" : "")
          << kernel.name << ": " << why;
      for (const Plan& plan : kernel.plans(problem)) {
        EXPECT_NE(why_not_run(kernel, problem, plan, gpu), "") << kernel.name << " on " << gpu.name;
      }
    }
  }
  EXPECT_GE(asked, 35 * all_gpu_models().size());
}

TEST(PlanToExplain, APlanWhoseBlocksNoMultiprocessorHoldsMakesWayForOneThatFits) {
  const KernelInfo& kernel = simulated("decode_mma");
  const Problem problem = problem_from_string("b8 h32/8 q1 k8192 d128 none bf16");
  const auto on = [&](const char* device) {
    return plan_to_explain(kernel, problem, gpu_model_from_name(device), {});
  };
  const ChosenPlan h200 = on("h200"), a100 = on("a100");
  EXPECT_NE(why_not_run(kernel, problem, h200.plan, gpu_model_from_name("a100")), "");
  EXPECT_EQ(why_not_run(kernel, problem, a100.plan, gpu_model_from_name("a100")), "");
  EXPECT_TRUE(a100.origin.starts_with("the kernel's first that fits this device; not "))
      << a100.origin;
  EXPECT_NE(a100.plan.combine, Combine::cluster) << "clusters take sm_90";
}

TEST(Explanation, OfPagesIsAboutTheLaunchesAndTheTableThatTheyMake) {
  const KernelInfo& kernel = simulated("decode_mma");
  const Problem problem = problem_from_string("b2 h2 q1 k96 d64 fp16");
  const std::vector<Plan> plans = kernel.plans(problem);
  const Plan plan = *std::ranges::find(plans, Combine::last_block, &Plan::combine);
  const GpuModel& gpu = gpu_model_from_name("h200");
  const auto in = [&](const char* layouts) {
    return explain(kernel, problem, plan, gpu, nullptr, paging_from_string(layouts));
  };
  const Explanation contiguous = explain(kernel, problem, plan, gpu);
  const Explanation dense = in("paged16/shuffled1"), csr = in("paged16/csr");
  ASSERT_EQ(dense.launches.size(), 1U);
  EXPECT_NE(dense.launches[0].configuration.kernel, contiguous.launches.at(0).configuration.kernel);
  EXPECT_FALSE(reads(contiguous, "page_table"));
  EXPECT_TRUE(reads(dense, "page_table")) << dense.why_no_counters;
  EXPECT_TRUE(reads(dense, "key_lengths") && !reads(dense, "page_starts"));
  EXPECT_TRUE(reads(csr, "page_starts") && reads(csr, "page_table")) << csr.why_no_counters;
  EXPECT_NE(explanation_text(csr).find("K and V in paged16/csr"), std::string::npos);
  EXPECT_EQ(explanation_json(csr).at("layouts"), "paged16/csr");
  EXPECT_THROW(
      (void)plan_to_explain(simulated("k1_naive"), problem, gpu, {}, paging_from_string("paged16")),
      InvalidInput);
}

TEST(Explanation, AKernelThatAsksForAsManyBlocksAsRunAtOnceGetsThoseOfTheDevice) {
  for (const char* kernel : {"read_once", "decode_mma", "mla_wgmma"}) {
    const bool is_mla = std::string_view(kernel) == "mla_wgmma";
    const Problem problem =
        problem_from_string(is_mla ? "b137 h16/1 q1 k4096 d576 bf16 dv512 values_in_keys"
                                   : "b64 h32/8 q1 k4096 d128 bf16");
    for (const GpuModel& gpu : all_gpu_models()) {
      const Plan plan = plan_to_explain(simulated(kernel), problem, gpu, {}).plan;
      const Explanation e = explain(simulated(kernel), problem, plan, gpu);
      if (!e.why_not_run.empty()) continue;
      ASSERT_FALSE(e.launches.empty()) << kernel;
      const ExplainedLaunch& first = e.launches.front();
      EXPECT_EQ(first.configuration.grid.count(), first.occupancy.blocks * gpu.sms)
          << kernel << ' ' << gpu.name;
      EXPECT_EQ(first.occupancy.idle_sms, 0) << kernel << ' ' << gpu.name;
    }
  }
}

TEST(LaunchCounts, OfAKernelOnTheExecutorAreThoseOfItsExplanation) {
  const KernelInfo& kernel = simulated("k3_sequence_parallel");
  const Problem problem = problem_from_string("b1 h2 n64 d64");
  const Plan plan = plan_from_string("qt32 kt32");
  const GpuModel& gpu = gpu_model_from_name("h200");
  const std::vector<Measurement> counts = launch_counts(gpu)(kernel, problem, plan);
  const Explanation e = explain(kernel, problem, plan, gpu);
  EXPECT_EQ(measured(counts, "exponentials"), e.exponentials);
  EXPECT_EQ(measured(counts, "uncached_bytes"), e.law->total());
  EXPECT_EQ(measured(counts, "time_floor"), 1e3 * e.floors.largest());
  EXPECT_EQ(measured(counts, "shared_passes_merged"), shared_passes(*e.counters).merged);
  EXPECT_EQ(measured(counts, "peak_bandwidth"), gpu.dram_bytes_per_s);
}

TEST(LargestTiles, FitTheBudgetAndNoneIsNamedWhereNoneDoes) {
  const FitQuestion question{.budget_bytes = 164 << 10, .head_dim = 64};
  const Json json = largest_tiles_json(question);
  std::size_t cells = 0;
  for (const auto& [layout, rules] : json["layouts"].items()) {
    for (const auto& [rule, cell] : rules.items()) {
      ++cells;
      EXPECT_LE(cell["bytes"], question.budget_bytes) << layout << ' ' << rule;
    }
  }
  EXPECT_EQ(cells, 12U);
  EXPECT_NE(largest_tiles_text(question).find("FlashAttention's rule"), std::string::npos);
  const FitQuestion tiny{.budget_bytes = 64, .head_dim = 1024};
  EXPECT_TRUE(largest_tiles_json(tiny)["layouts"]["everything"]["powers_of_two"].is_null());
  EXPECT_NE(largest_tiles_text(tiny).find("none fits"), std::string::npos);
}

}  // namespace
}  // namespace attest
