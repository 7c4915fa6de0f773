// The bench on the executor, where every kernel runs.
#include "experiments/tuning/device_bench.hpp"

#include <gtest/gtest.h>

#include "core/registry.hpp"

namespace attest {
namespace {

const KernelInfo& k3() {
  return *find_kernel("k3_sequence_parallel", Executor::simt);
}

struct OnExecutor {
  std::unique_ptr<Device> device = make_device(Executor::simt);
  InProcessRunner runner;
  SmallCases small_cases{runner};
  Problem problem = problem_from_string("b2 h4/2 q17 k33 d24 causal_bottom_right fp32");

  /// Of the first Plan.
  std::string why_wrong(const KernelInfo& kernel) {
    DeviceBench bench(kernel, problem, *device, small_cases);
    return bench.why_wrong(kernel.plans(problem).front()).value_or("");
  }
};

/// K3 with something else in the place of its launch when there is more than one batch: what small
/// cases, which have one, do not show.
KernelInfo wrong_in_batches(void (*launch)(const KernelInfo&, Arguments, Device&)) {
  KernelInfo kernel = k3();
  kernel.launch = [launch](const Arguments& a, Device& device) {
    a.problem.batch > 1 ? launch(k3(), a, device) : k3().launch(a, device);
  };
  return kernel;
}

TEST(DeviceBench, FindsEveryPlanOfARightKernelRight) {
  OnExecutor here;
  DeviceBench bench(k3(), here.problem, *here.device, here.small_cases);
  for (const Plan& plan : k3().plans(here.problem)) {
    EXPECT_EQ(bench.why_wrong(plan), std::nullopt) << to_string(plan);
  }
  EXPECT_GT(bench.time_ms(k3().plans(here.problem).front()), 0);
}

TEST(DeviceBench, NamesTheLawThatAPlantedBugBreaks) {
  for (const char* mutant :
       {"mutant/c05_tail_lanes_in_denominator", "mutant/c17_key_row_out_of_bounds",
        "mutant/c03_tile_pointer_not_advanced"}) {
    OnExecutor here;
    const KernelInfo* const kernel = find_kernel(mutant, Executor::simt);
    ASSERT_NE(kernel, nullptr) << mutant;
    EXPECT_NE(here.why_wrong(*kernel).find(kernel->killed_by), std::string::npos)
        << mutant << ": " << here.why_wrong(*kernel);
  }
}

TEST(DeviceBench, FindsWhatIsWrongWithTheWholeProblemAlone) {
  OnExecutor here;
  const KernelInfo silent = wrong_in_batches([](const KernelInfo&, Arguments, Device&) {});
  EXPECT_NE(here.why_wrong(silent).find("was not written"), std::string::npos);
  const KernelInfo warm = wrong_in_batches([](const KernelInfo& right, Arguments a, Device& d) {
    a.problem.scale *= 1.01F;
    right.launch(a, d);
  });
  EXPECT_NE(here.why_wrong(warm).find("within"), std::string::npos);
  const KernelInfo shy = wrong_in_batches([](const KernelInfo& right, Arguments a, Device& d) {
    std::byte* const elsewhere = d.allocate(static_cast<std::size_t>(a.problem.rows() * 24 * 4));
    a.o = elsewhere;  // LSE is written, O is not
    right.launch(a, d);
    d.synchronize();
    d.release(elsewhere);
  });
  EXPECT_NE(here.why_wrong(shy).find("O at"), std::string::npos) << here.why_wrong(shy);
}

TEST(SmallCases, AreOfTheSameKindAndJudgedOnceForAllLengths) {
  struct CountingRunner final : CaseRunner {
    int calls = 0;
    CaseAnswer run(const KernelInfo&, const CaseTask& task) override {
      ++calls;
      EXPECT_LE(task.the_case.problem.key_len, 4 * 16 + 1);
      return {};
    }
  } runner;
  SmallCases cases(runner);
  const Plan plan{.query_tile = 16, .key_tile = 16};
  for (const char* text : {"b4 h8/8 n4096 d64", "b2 h8/8 n8192 d64", "b1 h2/2 n70 d64"}) {
    EXPECT_EQ(cases.why_wrong(k3(), problem_from_string(text), plan), std::nullopt);
  }
  EXPECT_EQ(runner.calls, 1);
  for (const char* text : {"h8/8 n4096 d64 causal_top_left", "h8/8 n4096 d32", "h8/4 n4096 d64",
                           "h8/8 q1 k4096 d64", "h8/8 n4096 d64 scale2"}) {
    EXPECT_EQ(cases.why_wrong(k3(), problem_from_string(text), plan), std::nullopt);
  }
  EXPECT_EQ(runner.calls, 6);
}

}  // namespace
}  // namespace attest
