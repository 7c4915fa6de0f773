#include "experiments/study/run_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <sstream>

#include "core/operations/forward_arguments.hpp"
#include "core/records/metric.hpp"
#include "core/run/kernel.hpp"
#include "experiments/study/gpu_users.hpp"
#include "experiments/timing/median_interval.hpp"

namespace attest {
namespace {

TEST_F(AStudy, TimesPointsBesideTheirBaseline) {
  add(fast, "n33 d8");
  add(slow, "n33 d8");
  add(fast, "n17 d8");
  spec.target_confidence = Noise::sigma;  // more than the fewest rounds
  const StudyOutcome outcome = run();
  EXPECT_EQ(outcome.timed, 5U) << "three points, a baseline of two problems";
  EXPECT_TRUE(outcome.is_complete);
  EXPECT_TRUE(outcome.refused.empty());
  const Record record = record_of("slow");
  EXPECT_EQ(record.verdict, "passed");
  EXPECT_EQ(record.labels.at("role"), "point");
  EXPECT_EQ(record.labels.at("baseline"), "rival");
  EXPECT_EQ(record.labels.at("cache"), "hot");
  EXPECT_EQ(record.labels.at("plan_origin"), "the kernel's first: nothing like this was tuned");
  EXPECT_EQ(record.labels.at("axis.problem.key_len"), "n33 d8");
  EXPECT_FALSE(record.labels.contains("flags"));
  expect_time(value(record, "time"), 2);
  EXPECT_LE(value(record, "time_low"), value(record, "time"));
  EXPECT_GE(value(record, "rounds"), 6);
  EXPECT_GE(value(record, "launches"), 1);
  std::istringstream text(record.labels.at("round_times_ms"));
  const std::vector<double> rounds{std::istream_iterator<double>(text), {}};
  EXPECT_EQ(static_cast<double>(rounds.size()), value(record, "rounds"));
  // As many digits as the label has: fewer would round what is rounded already.
  EXPECT_EQ(fmt::format("{:.6g}", median_interval(rounds).low),
            fmt::format("{:.6g}", value(record, "time_low")));
  const double speed = value(record, "speed_over_rival");
  expect_ratio_of_times(speed, 1.5);
  EXPECT_LE(value(record, "speed_over_rival_high") - value(record, "speed_over_rival_low"),
            2 * spec.target_confidence * speed);
  EXPECT_EQ(value(record, "sm_clock"), 1500);
  EXPECT_EQ(value(record, "temperature"), -1) << "the GPU does not tell it";
  EXPECT_EQ(value(record, "rate"),
            forward_flops(record.subject->problem) / (value(record, "time") * 1e9));
  EXPECT_EQ(value(record, "model.flops"), 7);
  EXPECT_EQ(record_of("rival_kernel").labels.at("role"), "baseline");
}

TEST_F(AStudy, FlagsTimesThatAnotherStudyMayHaveDisturbed) {
  add(fast, "n33 d8");
  StudyRun here = options();
  here.gpu_users = root / "";
  const GpuUsers other(PretendedGpu().description(), here.gpu_users);
  (void)run(here);
  EXPECT_EQ(record_of("fast").labels.at("flags"), "shared_gpu");
}

TEST_F(AStudy, NamesTheLibraryOfWhatRanInOneAndOfNothingElse) {
  KernelInfo peer = fast;
  peer.name = "peer";
  peer.timed_launch = [this](const ForwardArguments& a, Device& device, LaunchesInRow launches) {
    note_library("library 1.2 ran kernel_3");
    return fast.timed_launch(a, device, launches);
  };
  add(peer, "n33 d8");
  add(slow, "n33 d8");
  (void)run();
  EXPECT_EQ(record_of("peer").labels.at("library"), "library 1.2 ran kernel_3");
  EXPECT_FALSE(record_of("slow").labels.contains("library"));
  EXPECT_FALSE(record_of("rival_kernel").labels.contains("library"));
}

TEST_F(AStudy, SaysInItsSummaryWhichPartOfWhichOrderItWas) {
  add(fast, "n33 d8");
  StudyRun second = options();
  second.seed = 12;
  second.shard = {.index = 1, .count = 3};
  (void)run(second);
  for (const Record& record : folder.records()) {
    if (record.kind != "study_summary") continue;
    EXPECT_EQ(record.labels.at("seed"), "12");
    EXPECT_EQ(record.labels.at("part"), "2 of 3");
    return;
  }
  ADD_FAILURE() << "there is no summary";
}

TEST_F(AStudy, RefusesToTimeWhatIsWrong) {
  add(wrong, "n33 d8");
  add(fast, "n33 d8");
  const StudyOutcome outcome = run();
  ASSERT_EQ(outcome.refused.size(), 1U);
  const Record record = record_of("wrong");
  EXPECT_EQ(record.verdict, "failed");
  EXPECT_NE(record.labels.at("reason").find("within_bound"), std::string::npos)
      << record.labels.at("reason");
  EXPECT_EQ(value(record, "time"), -1);
  EXPECT_EQ(record_of("fast").verdict, "passed");
  EXPECT_TRUE(outcome.is_complete) << "a refused point is done";
}

TEST_F(AStudy, RefusesWhatIsWrongOnTheProblemItselfAlone) {
  KernelInfo shy = fast;  // wrong in batches over many keys, which small cases have not
  shy.name = "shy";
  shy.launch = [this](ForwardArguments a, Device& device) {
    if (a.problem.batch == 2 && a.problem.key_len > 30) a.problem.scale *= 1.01F;
    fast.launch(a, device);
  };
  add(shy, "b2 n33 d8");
  const StudyOutcome outcome = run();
  ASSERT_EQ(outcome.refused.size(), 1U);
  EXPECT_NE(outcome.refused[0].find("within"), std::string::npos) << outcome.refused[0];
}

TEST_F(AStudy, RefusesWhatGivesWrongAnswersWhileItIsTimed) {
  KernelInfo lazy = fast;
  lazy.name = "lazy";
  lazy.timed_launch = [](const ForwardArguments&, Device&, LaunchesInRow) { return noisy(0.1); };
  add(lazy, "n33 d8");
  add(slow, "n33 d8");
  const StudyOutcome outcome = run();
  ASSERT_EQ(outcome.refused.size(), 1U);
  const Record record = record_of("lazy");
  EXPECT_EQ(record.verdict, "failed");
  EXPECT_NE(record.labels.at("reason").find("when it is timed on other values"), std::string::npos)
      << record.labels.at("reason");
  EXPECT_EQ(value(record, "time"), -1) << "a time of nothing is no time";
  EXPECT_EQ(record_of("slow").verdict, "passed");
}

TEST_F(AStudy, TimesEachRoundOnOtherValuesAtTheSameAddresses) {
  std::vector<std::pair<const void*, float>> seen;
  KernelInfo watched = fast;
  watched.timed_launch = [&](const ForwardArguments& a, Device& device, LaunchesInRow launches) {
    seen.emplace_back(a.q, *static_cast<const float*>(a.q));
    return fast.timed_launch(a, device, launches);
  };
  add(watched, "n33 d8");
  (void)run();
  const auto rounds = static_cast<std::size_t>(value(record_of("fast"), "rounds"));
  ASSERT_GT(seen.size(), rounds);
  // The last timing is of answers that are checked.
  for (std::size_t i = seen.size() - rounds; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].first, seen[i - 1].first);
    EXPECT_NE(seen[i].second, seen[i - 1].second);
  }
}

TEST_F(AStudy, ALazyBaselineGivesNoRatio) {
  rival.timed_launch = [](const ForwardArguments&, Device&, LaunchesInRow) { return noisy(0.1); };
  add(fast, "n33 d8");
  EXPECT_EQ(run().refused.size(), 1U);
  EXPECT_EQ(value(record_of("fast"), "speed_over_rival"), -1);
  EXPECT_GT(value(record_of("fast"), "time"), 0);
}

TEST_F(AStudy, AWrongBaselineIsNotTimedEither) {
  KernelInfo copy = wrong;
  expansion.points.push_back(point_of(
      fast, "n33 d8", {{.name = "rival", .kernel = &copy, .subject = case_of(copy, "n33 d8")}}));
  const StudyOutcome outcome = run();
  EXPECT_EQ(outcome.refused.size(), 1U);
  EXPECT_EQ(value(record_of("fast"), "speed_over_rival"), -1);
  EXPECT_GT(value(record_of("fast"), "time"), 0);
}

TEST_F(AStudy, FlagsTimesUnderThrottlingAndKeepsTheReasons) {
  PretendedGpu::reasons = {{"power cap"}};
  add(fast, "n33 d8");
  (void)run();
  EXPECT_EQ(record_of("fast").labels.at("flags"), "throttled");
  EXPECT_EQ(record_of("fast").labels.at("throttle"), "power cap");
  EXPECT_EQ(value(record_of("fast"), "throttled"), 1) << "the share of timings";
  EXPECT_EQ(record_of("fast").labels.at("throttle_read"), "reasons");
  EXPECT_EQ(value(record_of("fast"), "group_throttled_time"), -1) << "nobody counted it";
}

TEST_F(AStudy, FlagsAThrottleThatWasOverWhenItsTimingWas) {
  PretendedGpu::counted_ms = {{"heat", 1000}, {"power cap", 5000}};
  PretendedGpu::power_cap_ms_a_reading = 2;
  add(fast, "n33 d8");
  (void)run();
  const Record record = record_of("fast");
  EXPECT_EQ(record.labels.at("flags"), "throttled");
  EXPECT_EQ(record.labels.at("throttle"), "power cap") << "heat was long ago";
  EXPECT_EQ(record.labels.at("throttle_read"), "counters, reasons");
  EXPECT_EQ(value(record, "throttled"), 0) << "at the end of no timing";
  EXPECT_EQ(value(record, "group_throttled_time"), 2) << "read before the rounds and after them";
}

TEST_F(AStudy, WithCountersThatStandStillWasNotThrottled) {
  PretendedGpu::counted_ms = {{"heat", 1000}};
  add(fast, "n33 d8");
  (void)run();
  EXPECT_FALSE(record_of("fast").labels.contains("flags"));
  EXPECT_EQ(value(record_of("fast"), "group_throttled_time"), 0);
}

TEST_F(AStudy, DoesNotBelieveACounterThatBeganAnew) {
  PretendedGpu::counted_ms = {{"power cap", 5000}};
  PretendedGpu::power_cap_ms_a_reading = -1;
  add(fast, "n33 d8");
  (void)run();
  EXPECT_FALSE(record_of("fast").labels.contains("flags"));
  EXPECT_EQ(record_of("fast").labels.at("throttle_read"), "reasons");
}

TEST_F(AStudy, SaysThatNobodyAskedWhetherItWasThrottled) {
  PretendedGpu::reasons.reset();
  add(fast, "n33 d8");
  (void)run();
  EXPECT_FALSE(record_of("fast").labels.contains("flags"));
  EXPECT_EQ(record_of("fast").labels.at("throttle_read"), "nothing");
}

TEST_F(AStudy, CountsNothingOfAKernelInAnotherProcessAndSaysSo) {
  spec.counters = {"dram"};
  add(fast, "n33 d8");
  const StudyOutcome outcome = run();
  EXPECT_EQ(value(record_of("fast"), "counter.dram"), -1);
  EXPECT_EQ(outcome.notes.at(0), "fast runs in another process, where this one counts nothing");
}

TEST_F(AStudy, CountsInLaunchesOfTheirOwnOrSaysWhyNot) {
  spec.counters = {"dram"};
  KernelInfo here = fast;
  here.timed_launch = nullptr;  // it runs in this process
  add(here, "n33 d8");
  (void)run();
  EXPECT_EQ(value(record_of("fast"), "counter.dram"), 42);
  PretendedGpu::forbids_counters = true;
  const ResultsFolder second(root / "second");
  const StudyOutcome outcome = run_study(spec, expansion, second, options());
  EXPECT_EQ(outcome.notes.at(0), "the driver forbids counters");
  EXPECT_GT(value(second.records()[0], "time"), 0) << "times do not need counters";
}

TEST_F(AStudy, FlushesTheCacheBeforeLaunchesThatAreCold) {
  spec.cache = CacheState::cold;
  add(fast, "n33 d8");
  (void)run();
  EXPECT_GT(PretendedGpu::flushes, 6);
  EXPECT_EQ(record_of("fast").labels.at("cache"), "cold");
}

TEST_F(AStudy, ReplaysLaunchesFromAGraphWhereItIsAskedTo) {
  spec.in_graph = true;
  KernelInfo here = fast;
  here.timed_launch = nullptr;  // it runs in this process
  add(here, "n33 d8");
  std::vector<bool> told;
  KernelInfo elsewhere = slow;
  elsewhere.timed_launch = [&](const ForwardArguments& a, Device& device, LaunchesInRow launches) {
    told.push_back(launches.in_graph);
    return slow.timed_launch(a, device, launches);
  };
  add(elsewhere, "n33 d8");
  (void)run();
  EXPECT_GT(PretendedGpu::replays, 6);
  EXPECT_EQ(record_of("fast").labels.at("launch"), "graph");
  EXPECT_FALSE(told.empty());
  EXPECT_TRUE(std::ranges::all_of(told, std::identity())) << "a peer is told to do likewise";
}

TEST_F(AStudy, MeasuresWhicheverErrorsOfRowsAreAskedFor) {
  spec.metrics = {"time", "error.over_bound_max"};
  for (const Metric& metric : all_metrics()) {
    const auto of_study = std::ranges::find(error_metrics(), metric.name, &ErrorMetric::of_profile);
    ASSERT_NE(of_study, error_metrics().end()) << metric.name;
    spec.metrics.push_back(of_study->name);
  }
  add(fast, "n33 d8");
  (void)run();
  EXPECT_GT(value(record_of("fast"), "error.rmse"), 0);
  EXPECT_GT(value(record_of("fast"), "error.over_bound_max"), 0);
  EXPECT_LE(value(record_of("fast"), "error.over_bound_max"), 1);
  for (const ErrorMetric& metric : error_metrics()) {
    const Record record = record_of("fast");
    EXPECT_NE(find_measurement(record.measurements, metric.name), nullptr) << metric.name;
  }
}

TEST_F(AStudy, MeasuresNoErrorThatNobodyAskedFor) {
  spec.metrics = {"time", "error.rmse"};
  add(fast, "n33 d8");
  (void)run();
  const Record record = record_of("fast");
  EXPECT_GT(value(record, "error.lse_rmse"), 0);
  EXPECT_EQ(value(record, "error.max_abs"), -1);
}

TEST_F(AStudy, MeasuresErrorsOfGradientsAsOfAnswers) {
  spec.metrics = {"error.rmse", "error.over_bound_max"};
  spec.baselines.clear();
  expansion.points = {point_of(*find_kernel("backward_tiled", Executor::cpu), "n33 d8 backward")};
  const StudyOutcome outcome = run();
  EXPECT_TRUE(outcome.notes.empty()) << outcome.notes.front();
  const Record record = record_of("backward_tiled");
  EXPECT_FALSE(record.labels.contains("not_measured"));
  for (const char* name : {"error.rmse", "error.dk_rmse", "error.dv_rmse"}) {
    EXPECT_GT(value(record, name), 0) << name;
  }
  for (const char* name : {"error.over_bound_max", "error.dk_over_bound_max"}) {
    EXPECT_LE(value(record, name), 1) << name;
    EXPECT_GT(value(record, name), 0) << name;
  }
}

TEST_F(AStudy, AnOutputThatAKernelDoesNotGiveHasNoError) {
  spec.metrics = {"error.rmse"};
  KernelInfo silent = fast;
  silent.missing_outputs = {"lse"};
  silent.launch = [right = fast.launch](ForwardArguments a, Device& device) {
    std::vector<float> lse(
        static_cast<std::size_t>(a.problem.batch * a.problem.query_heads * a.problem.query_len));
    a.lse = lse.data();
    right(a, device);
  };
  silent.timed_launch = [&](const ForwardArguments& a, Device& device, LaunchesInRow) {
    silent.launch(a, device);
    return noisy(1);
  };
  add(silent, "n33 d8");
  (void)run();
  EXPECT_GT(value(record_of("fast"), "error.rmse"), 0);
  EXPECT_EQ(value(record_of("fast"), "error.lse_rmse"), -1);
}

TEST_F(AStudy, SaysWhatWasAskedForAndIsNotThere) {
  spec.metrics = {"time", "error.rmse", "temperature"};  // which the pretended GPU does not tell
  KernelInfo limit = fast;
  limit.name = "limit";
  limit.role = KernelRole::limit;
  add(fast, "n33 d8");
  add(fast, "n35 d8");
  add(limit, "n33 d8");
  const StudyOutcome outcome = run();
  EXPECT_EQ(record_of("fast").labels.at("not_measured"), "temperature");
  EXPECT_EQ(record_of("limit").labels.at("not_measured"), "error.rmse, temperature");
  EXPECT_NE(std::ranges::find(outcome.notes,
                              "temperature of fast was asked for and not measured at 2 points"),
            outcome.notes.end());
  EXPECT_NE(std::ranges::find(outcome.notes,
                              "error.rmse, temperature of limit was asked for and not measured at "
                              "1 point: limit gives no answer"),
            outcome.notes.end());
}

TEST_F(AStudy, HalvingTimesSlowPointsLess) {
  spec.sampling.method = Sampling::Method::halving;
  std::vector<KernelInfo> kernels;
  for (int i = 0; i < 20; ++i) {
    kernels.push_back(
        pretended_gpu_kernel(fmt::format("k{}", i), [i] { return noisy(1 + 0.1 * i); }));
  }
  for (const KernelInfo& kernel : kernels) add(kernel, "n9 d8");
  (void)run();
  EXPECT_GE(value(record_of("k0"), "rounds"), 6);
  expect_ratio_of_times(value(record_of("k0"), "speed_over_rival"), 3);
  EXPECT_EQ(record_of("k19").labels.at("flags"), "left_race");
  EXPECT_EQ(value(record_of("k19"), "rounds"), 1);
  EXPECT_EQ(value(record_of("k19"), "time_high"), INFINITY);
  int left = 0;
  for (const Record& record : records()) left += record.labels.contains("flags");
  EXPECT_EQ(left, 12);
}

TEST_F(AStudy, OnAnExecutorNothingIsTimedButVerifiedAndModelled) {
  const KernelInfo& emulated = *find_kernel("o5_deferred", Executor::cpu);
  KernelInfo bad = wrong;
  bad.name = "bad";
  bad.executor = Executor::cpu;
  spec.metrics = {"error.rmse"};
  spec.baselines.clear();
  expansion.points = {point_of(emulated, "b4 h8 n4096 d8"), point_of(bad, "b4 h8 n4096 d8")};
  const StudyOutcome outcome = run();
  EXPECT_EQ(outcome.refused.size(), 1U);
  const Record record = record_of("o5_deferred");
  EXPECT_EQ(record.verdict, "passed");
  EXPECT_EQ(value(record, "time"), -1);
  EXPECT_EQ(value(record, "model.flops"), 7);
  EXPECT_GT(value(record, "error.rmse"), 0);
  EXPECT_NE(record.labels.at("error_problem"), record.labels.at("problem")) << "a shorter one";
  EXPECT_EQ(record_of("bad").verdict, "failed");
}

}  // namespace
}  // namespace attest
