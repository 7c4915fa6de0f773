#include <fmt/format.h>

#include <set>

#include "core/operations/forward_arguments.hpp"
#include "experiments/study/run_test.hpp"

namespace attest {
namespace {

TEST_F(AStudy, VerdictsAreKeptForTheBuildThatTheyAreAbout) {
  add(fast, "n33 d8");
  (void)run();
  const int judged = PretendingRunner::cases;
  EXPECT_EQ(judged, 2);
  const ResultsFolder second(root / "second"), third(root / "third");
  (void)run_study(spec, expansion, second, options());
  EXPECT_EQ(PretendingRunner::cases, judged) << "taken from the cache";
  StudyRun another = options();
  another.build = "another build";
  (void)run_study(spec, expansion, third, another);
  EXPECT_EQ(PretendingRunner::cases, 2 * judged);
}

TEST_F(AStudy, VerdictsAboutLibrariesAreNotKept) {
  rival.unavailable = [] { return std::string(); };
  add(fast, "n33 d8");
  (void)run();
  const int judged = PretendingRunner::cases;
  const ResultsFolder second(root / "second");
  (void)run_study(spec, expansion, second, options());
  EXPECT_EQ(PretendingRunner::cases, judged + 1) << "its library may be another today";
}

TEST_F(AStudy, GoesOnWhereItWasInterruptedAndRepeatsNothing) {
  for (int len = 9; len < 15; ++len) add(fast, fmt::format("n{} d8", len));
  int asked = 0;
  for (int stop_after = 50; stop_after < 10'000'000; stop_after *= 2) {
    StudyRun stopped = options();
    asked = 0;
    stopped.is_interrupted = [&] { return ++asked > stop_after; };
    stopped.jobs = 1;
    const StudyOutcome outcome = run(stopped);
    if (!outcome.is_interrupted) break;
  }
  std::multiset<std::string> points;
  for (const Record& record : records()) points.insert(record.labels.at("point"));
  EXPECT_EQ(points.size(), 12U);
  EXPECT_EQ(std::set<std::string>(points.begin(), points.end()).size(), 12U);
  EXPECT_EQ(run().timed, 0U) << "nothing is left";
}

TEST_F(AStudy, ShardsAreTogetherTheStudyAndADeadOneIsPickedUp) {
  for (int len = 9; len < 15; ++len) add(fast, fmt::format("n{} d8", len));
  for (const std::int64_t index : {0, 2, 3}) {  // shard 1 died before it began
    StudyRun part = options();
    part.shard = {.index = index, .count = 4};
    EXPECT_FALSE(run(part).is_complete);
  }
  const StudyOutcome rest = run();
  EXPECT_GT(rest.timed, 0U);
  EXPECT_TRUE(rest.is_complete);
  std::multiset<std::string> points;
  for (const Record& record : records()) points.insert(record.labels.at("point"));
  EXPECT_EQ(points.size(), 12U);
  EXPECT_EQ(std::set<std::string>(points.begin(), points.end()).size(), 12U);
}

TEST_F(AStudy, SaysWhatTheTimeBudgetLeftOutAndDoesItLater) {
  add(fast, "n33 d8");
  add(fast, "n17 d8");
  StudyRun hurried = options();
  hurried.time_budget_s = 0;
  spec.expect = parse_study(
                    "question: Q?\nkernels: o5_deferred\nproblem: {length: 9}\n"
                    "expect: [{that: count() >= 0, because: it counts}]\n",
                    "test")
                    .spec.value()
                    .expect;
  const StudyOutcome outcome = run(hurried);
  EXPECT_EQ(outcome.over_budget, 2U);
  EXPECT_FALSE(outcome.is_complete);
  ASSERT_EQ(outcome.answers.size(), 1U) << "true of the points that there are, too";
  EXPECT_EQ(outcome.answers[0].labels.at("answer"), "undecided");
  EXPECT_EQ(outcome.answers[0].labels.at("found"), "2 of 2 points left out by the time budget");
  EXPECT_TRUE(records("study_answer").empty()) << "one is due when it is resumed";
  EXPECT_EQ(records()[0].verdict, "unsupported");
  EXPECT_EQ(records()[0].labels.at("skipped_by"), "budget");
  const StudyOutcome later = run();
  EXPECT_EQ(later.timed, 4U);
  ASSERT_EQ(later.answers.size(), 1U);
  EXPECT_EQ(later.answers.at(0).labels.at("answer"), "holds");
  EXPECT_EQ(records("study_answer").size(), 1U);
}

TEST_F(AStudy, RecordsWhatIsSkippedOnceWithItsSentence) {
  expansion.skipped = {{.by = Skipped::By::constraint,
                        .what = "fast of n9",
                        .reason = "needs too much",
                        .axes = {{"plan.stages", 3.0}}}};
  add(fast, "n33 d8");
  EXPECT_EQ(run().skipped, 1U);
  (void)run();
  int skipped = 0;
  for (const Record& record : records()) skipped += record.labels.contains("skipped_by");
  EXPECT_EQ(skipped, 1);
}

TEST_F(AStudy, TheSummarySaysWhatTheTimeWentInto) {
  add(fast, "n33 d8");
  (void)run();
  const std::vector<Record> summaries = records("study_summary");
  ASSERT_EQ(summaries.size(), 1U);
  EXPECT_EQ(value(summaries[0], "points"), 1);
  EXPECT_EQ(value(summaries[0], "timed"), 2);
  const double kernels = value(summaries[0], "kernel_time");
  EXPECT_GT(kernels, 0.05) << "6 rounds of 10 ms and more";
  EXPECT_EQ(summaries[0].labels.at("question"), "how fast?");
}

/// A problem that small cases are no longer than a part of: what it shows, they do not.
constexpr std::int64_t long_length = 300;

TEST_F(AStudy, ADeviceThatIsLostEndsTheRunAndNamesThePoint) {
  KernelInfo killer = fast;
  killer.name = "killer";
  killer.launch = [this](const ForwardArguments& a, Device& device) {
    PretendedGpu::is_lost = a.problem.key_len == long_length;
    fast.launch(a, device);
  };
  add(killer, fmt::format("n{} d8", long_length));
  EXPECT_THROW((void)run(), MachineError);
  EXPECT_NE(record_of("killer").labels.at("reason").find("illegal memory access"),
            std::string::npos);
  PretendedGpu::is_lost = false;
  EXPECT_EQ(run().timed, 1U) << "the baseline; the killer is not tried again";
}

TEST_F(AStudy, MemoryThatRanOutRefusesThePointAlone) {
  KernelInfo greedy = fast;
  greedy.name = "greedy";
  greedy.workspace_bytes = [](const Problem& problem, const Plan&) -> std::size_t {
    if (problem.key_len == long_length) throw MachineError("no room for 8 TiB");
    return 0;
  };
  add(greedy, fmt::format("n{} d8", long_length));
  add(fast, fmt::format("n{} d8", long_length));
  const StudyOutcome outcome = run();
  EXPECT_EQ(outcome.refused.size(), 1U);
  EXPECT_NE(record_of("greedy").labels.at("reason").find("no room for 8 TiB"), std::string::npos);
  EXPECT_GT(value(record_of("fast"), "time"), 0);
}

}  // namespace
}  // namespace attest
