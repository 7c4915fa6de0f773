#include "experiments/study/job.hpp"

#include <gtest/gtest.h>

#include <string_view>

#include "core/base/error.hpp"
#include "core/base/temporary_folder.hpp"

namespace attest {
namespace {

StudySpec small_study() {
  ParsedStudy parsed = parse_study(
      "question: how fast?\nkernels: [k3_sequence_parallel]\nproblem: {batch: 1, heads: [1, 2], "
      "length: 64, head_dim: 32}\nplan: {query_tile: 32, key_tile: 32}\nrepeats: 3\n"
      "time_budget: 90s\nexpect:\n  - {that: max(time) < 1s, because: it computes}\n",
      "small");
  for (const StudyError& error : parsed.errors) ADD_FAILURE() << to_string(error, "small");
  return parsed.spec.value();
}

StudyJob small_job(const TemporaryFolder& root,
                   RunSettings asked = {.executor = "simt", .device = "h200"}) {
  return new_job(small_study(), root / "results", std::move(asked), {}, {});
}

TEST(StudyPart, IsTheShardThatWasAskedForElseThatOfTheRankElseEverything) {
  const Environment second_of_four = [](const char* name) -> const char* {
    const std::string_view variable = name;
    return variable == "OMPI_COMM_WORLD_RANK"         ? "1"
           : variable == "OMPI_COMM_WORLD_SIZE"       ? "4"
           : variable == "OMPI_COMM_WORLD_LOCAL_RANK" ? "1"
                                                      : nullptr;
  };
  const StudyPart asked = study_part(Shard{.index = 2, .count = 3}, second_of_four, 2);
  EXPECT_EQ(asked.words, "part 3 of 3");
  EXPECT_EQ(asked.visible_gpu, "");
  const StudyPart rank = study_part(std::nullopt, second_of_four, 2);
  EXPECT_EQ(rank.words, "rank 2 of 4 (Open MPI), GPU 1 of 2");
  EXPECT_EQ(rank.shard.index, 1);
  EXPECT_EQ(rank.visible_gpu, "1");
  const StudyPart everything = study_part(
      std::nullopt, [](const char*) -> const char* { return nullptr; }, 2);
  EXPECT_EQ(everything.words, "");
  EXPECT_EQ(everything.shard.count, 1);
}

TEST(StudyJob, BeginsWithThePointsOfThisMachineAndTakesNoBudgetWhereNothingIsTimed) {
  const TemporaryFolder root;
  const StudyJob job = small_job(root);
  EXPECT_EQ(job.expansion.points.size(), 2U);
  EXPECT_FALSE(is_timed(job.expansion));
  EXPECT_FALSE(job.settings.time_budget_s.has_value());
  EXPECT_FALSE(job.settings.program.empty());
  EXPECT_FALSE(std::filesystem::exists(job.folder.path())) << "nothing is written";
  const StudyJob hurried =
      small_job(root, {.executor = "simt", .device = "h200", .time_budget_s = 2});
  EXPECT_EQ(hurried.settings.time_budget_s, 2);
}

TEST(StudyJob, RefusesAnExecutorOrADeviceThatThereIsNot) {
  const TemporaryFolder root;
  EXPECT_THROW((void)small_job(root, {.executor = "tpu", .device = "h200"}), InvalidInput);
  EXPECT_THROW((void)small_job(root, {.executor = "simt", .device = "h999"}), InvalidInput);
}

TEST(StudyJob, GoesOnAsItWasBegunAndOnlyByTheSameProgram) {
  const TemporaryFolder root;
  StudyJob job = small_job(root);
  job.folder.begin(job.spec.text, job.settings, {});
  const StudyJob again = resumed_job(small_study(), job.folder, 7, {}, {});
  EXPECT_EQ(again.expansion.points.size(), job.expansion.points.size());
  EXPECT_EQ(again.settings.executor, "simt");
  EXPECT_EQ(again.settings.time_budget_s, 7);
  job.settings.program = "another";
  const ResultsFolder other(root / "other");
  other.begin(job.spec.text, job.settings, {});
  EXPECT_THROW((void)resumed_job(small_study(), other, std::nullopt, {}, {}), InvalidInput);
}

TEST(StudyJob, SaysBeforeItRunsWhatWillBeMeasuredAndWhatNot) {
  const TemporaryFolder root;
  StudyJob job = small_job(root);
  job.part.words = "part 1 of 2";
  job.expansion.skipped = {{.by = Skipped::By::kernel, .what = "a", .reason = "too large"},
                           {.by = Skipped::By::kernel, .what = "b", .reason = "too large"},
                           {.by = Skipped::By::sampling, .what = "c", .reason = "not drawn"}};
  EXPECT_EQ(start_text(job),
            "small: how fast?\n"
            "  2 points of 1 kernel on simt; this is part 1 of 2\n"
            "  nothing is timed without a GPU: models and the executor's counters instead\n"
            "      2 skipped by kernel: too large\n"
            "      1 skipped by sampling: not drawn\n" +
                few_rounds_text(job.spec));
  EXPECT_NE(few_rounds_text(job.spec), "");
  job.spec.repeats.reset();
  EXPECT_EQ(few_rounds_text(job.spec), "");
}

TEST(StudyJob, EndsWithTheWorstOfItsPointsAndAnswers) {
  const TemporaryFolder root;
  const StudyJob job = small_job(root);
  StudyOutcome outcome;
  outcome.is_complete = true;
  EXPECT_EQ(exit_code_of(outcome), ExitCode::passed);
  EXPECT_EQ(how_to_go_on(job, outcome), "");
  Record answer;
  answer.labels = {{"answer", "refuted"}, {"that", "a < b"}, {"found", "a is 2, b is 1"}};
  outcome.answers = {answer};
  EXPECT_EQ(exit_code_of(outcome), ExitCode::verdict_failed);
  EXPECT_NE(end_text(job, outcome).find("refuted    a < b: a is 2, b is 1\n"), std::string::npos)
      << end_text(job, outcome);
  outcome.answers.clear();
  outcome.refused = {"k3 is wrong at row 1"};
  EXPECT_EQ(exit_code_of(outcome), ExitCode::verdict_failed);
  EXPECT_NE(end_text(job, outcome).find("REFUSED k3 is wrong at row 1\n"), std::string::npos);
  outcome.is_interrupted = true;
  EXPECT_EQ(exit_code_of(outcome), ExitCode::interrupted);
  EXPECT_NE(how_to_go_on(job, outcome).find("attest study resume"), std::string::npos);
}

TEST(StudyJob, ThatItsTimeBudgetCutShortIsInconclusive) {
  const TemporaryFolder root;
  const StudyJob job = small_job(root);
  StudyOutcome outcome;
  outcome.points = 36;
  outcome.over_budget = 21;
  EXPECT_EQ(exit_code_of(outcome), ExitCode::inconclusive);
  EXPECT_NE(end_text(job, outcome)
                .find("INCONCLUSIVE: the time budget ended with 21 of 36 points not measured\n"),
            std::string::npos)
      << end_text(job, outcome);
  EXPECT_NE(how_to_go_on(job, outcome), "");
  outcome.refused = {"k3 is wrong at row 1"};
  EXPECT_EQ(exit_code_of(outcome), ExitCode::verdict_failed) << "a wrong answer is no open one";
}

TEST(StudyJob, APartThatIsDoneWaitsForTheOthers) {
  const TemporaryFolder root;
  StudyJob job = small_job(root);
  job.part.words = "part 1 of 2";
  StudyOutcome outcome;
  EXPECT_EQ(how_to_go_on(job, outcome), "");
  EXPECT_NE(end_text(job, outcome).find("part 1 of 2 is done, others are not"), std::string::npos);
  outcome.over_budget = 1;
  EXPECT_NE(how_to_go_on(job, outcome), "");
}

}  // namespace
}  // namespace attest
