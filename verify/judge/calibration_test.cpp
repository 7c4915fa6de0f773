// The distributions of statistics over data sets.
#include "verify/judge/calibration.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/operations/backward_arguments.hpp"
#include "core/operations/combine.hpp"
#include "core/operations/forward.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "verify/judge/statistics.hpp"

namespace attest {
namespace {

Calibration calibration_of(const KernelInfo& kernel) {
  HostMemoryDevice device;
  return calibrate(kernel, ElementType::bf16, device, {.sets = 6, .largest_len = 64}, {});
}

TEST(Calibration, OfGradientsJudgesEverySetAndFindsNoAlarmInACorrectKernel) {
  const Calibration found = calibration_of(*find_kernel("backward_tiled", Executor::cpu));
  EXPECT_EQ(found.sets_judged, 6);
  EXPECT_EQ(found.sets_alarmed, 0);
  for (const StatisticDistribution& of : found.statistics) {
    EXPECT_EQ(of.values.size(), 6) << of.name;
    EXPECT_LE(of.quantile(1), of.threshold) << of.name;
  }
}

TEST(Calibration, CountsTheAlarmsOfTheStatisticThatAKernelBreaks) {
  const KernelInfo* const correct = find_kernel("backward_tiled", Executor::cpu);
  KernelInfo kernel = *correct;
  kernel.launch = [correct](const Arguments& all, Device& device) {
    correct->launch(all, device);
    const BackwardArguments a(all);
    auto* const dk = static_cast<std::uint16_t*>(a.dk);
    const Shape shape = key_shape(a.problem);
    for (std::int64_t i = 0; i < shape[0] * shape[1] * shape[2] * shape[3]; ++i) {
      const double x = round_to(ElementType::bf16, 1.02 * decode(ElementType::bf16, dk[i]));
      dk[i] = static_cast<std::uint16_t>(encode(ElementType::bf16, static_cast<float>(x)));
    }
  };
  const Calibration found = calibration_of(kernel);
  EXPECT_EQ(found.sets_alarmed, 6);
  for (const StatisticDistribution& of : found.statistics) {
    EXPECT_EQ(of.alarms, of.name == "dk_gain" ? 6 : 0) << of.name;
  }
}

// n3_ring merges finished parts of 16 bits under half of its Plans: the laws ask nothing of O then.
TEST(Calibration, LeavesOutWhatTheModelDoesNotHave) {
  HostMemoryDevice device;
  KernelInfo ring = *find_kernel("n3_ring", Executor::cpu);
  ring.plans = [](const Problem&) {
    return std::vector<Plan>{{.key_tile = 16,
                              .normalise = Normalise::every_step,
                              .ranks = 3,
                              .distribution = Distribution::zigzag}};
  };
  const Calibration found =
      calibrate(ring, ElementType::bf16, device, {.sets = 6, .families = "normal"}, {});
  for (const StatisticDistribution& of : found.statistics) {
    EXPECT_EQ(of.values.empty(), of.name.starts_with("o_")) << of.name;
  }
}

TEST(Calibration, KnowsWhichOperationsHaveStatistics) {
  EXPECT_EQ(statistics_of(forward_operation).size(), statistic_count);
  EXPECT_EQ(statistics_of(backward_operation).size(), 4);
  EXPECT_TRUE(statistics_of(combine_operation).empty());
}

}  // namespace
}  // namespace attest
