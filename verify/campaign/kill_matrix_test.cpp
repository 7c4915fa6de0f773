#include "verify/campaign/kill_matrix.hpp"

#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/operations/backward.hpp"
#include "core/records/provenance.hpp"
#include "verify/judge/peer_rules.hpp"

namespace attest {
namespace {

KillMatrix small_matrix() {
  // One bug that hardly anything but laws about memory can see, one that only LSE shows, one that
  // everybody sees. They run in this process, so the first one is one of the executor: on the host
  // an access past the end may end the process.
  return make_kill_matrix({.kernels =
                               "mutant/c17_key_row_out_of_bounds,mutant/c32_low_precision_sum,"
                               "mutant/c44_softmax_per_tile",
                           .cases = 15,
                           .normal_cases = 4,
                           .shrink_calls = 0});
}

std::size_t column_named(const KillMatrix& matrix, std::string_view name) {
  for (std::size_t column = 0; column < matrix.columns(); ++column) {
    if (matrix.column_name(column) == name) return column;
  }
  ADD_FAILURE() << name;
  return 0;
}

void expect_who_sees_what(const KillMatrix& matrix) {
  ASSERT_EQ(matrix.mutants.size(), 3U);
  const MatrixRow& stray = matrix.mutants[0];
  const MatrixRow& low_sum = matrix.mutants[1];
  const MatrixRow& per_tile = matrix.mutants[2];
  EXPECT_TRUE(stray.is_killed_by(column_named(matrix, "exact laws")));
  EXPECT_TRUE(stray.laws.contains("clean_execution"));
  for (std::size_t column = 0; column < matrix.peers(); ++column) {
    // They see it only where what is read past the end belongs to another head.
    EXPECT_LT(2 * stray.columns[column].kills,
              stray.columns[column_named(matrix, "exact laws")].kills)
        << matrix.column_name(column);
    EXPECT_TRUE(per_tile.is_killed_by(column)) << matrix.column_name(column);
  }
  EXPECT_TRUE(low_sum.is_killed_by(column_named(matrix, "bound")));
  EXPECT_TRUE(matrix.is_as_expected());
}

void expect_the_same_cases_for_all(const KillMatrix& matrix) {
  EXPECT_EQ(matrix.correct.size(), 3U);
  for (const auto* rows : {&matrix.mutants, &matrix.correct}) {
    for (const MatrixRow& row : *rows) {
      EXPECT_EQ(row.cases, 15) << row.kernel->name;
      EXPECT_EQ(row.normal_cases, 4) << row.kernel->name;
      for (const Tally& tally : row.columns) {
        EXPECT_LE(tally.kills, tally.rejected);
        EXPECT_LE(tally.rejected, row.cases);
      }
    }
  }
}

void expect_reports_with_names_and_provenance(const KillMatrix& matrix) {
  const Provenance provenance = current_provenance("");
  const std::string text = to_markdown(matrix, provenance);
  const auto json = parse_json(to_json(matrix, provenance));
  EXPECT_NE(text.find("`attest mutants --cases 15 --normal-cases 4 --seed 1` at commit " +
                      provenance.commit),
            std::string::npos)
      << text.substr(0, 300);
  EXPECT_EQ(json["provenance"]["commit"], provenance.commit);
  ASSERT_EQ(json["mutants"].size(), matrix.mutants.size());
  for (const MatrixRow& row : matrix.mutants) {
    EXPECT_NE(text.find(row.kernel->name.substr(7)), std::string::npos) << row.kernel->name;
  }
}

// One matrix for all: it takes longer than the rest of this file.
TEST(KillMatrix, TellsWhichRuleSeesWhichBugOnTheSameCasesAndReportsIt) {
  const KillMatrix matrix = small_matrix();
  expect_who_sees_what(matrix);
  expect_the_same_cases_for_all(matrix);
  expect_reports_with_names_and_provenance(matrix);
}

KillMatrix matrix_of_padded_keys(std::int64_t cases, std::uint64_t seed) {
  return make_kill_matrix({.kernels = "mutant/m05_padded_keys_in_the_sum",
                           .cases = cases,
                           .normal_cases = 0,
                           .seed = seed,
                           .shrink_calls = 0});
}

TEST(KillMatrix, NamesPaddingWhereABugOfPaddingDies) {
  // The features asked about are those of the case that killed it first, which a seed draws.
  KillMatrix matrix;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    matrix = matrix_of_padded_keys(120, seed);
    if (matrix.mutants.front().killing_feature) break;
  }
  const MatrixRow& row = matrix.mutants.front();
  ASSERT_TRUE(row.killing_feature);
  EXPECT_NE(row.killing_feature->name.find("padded"), std::string::npos)
      << row.killing_feature->name;
  const Provenance provenance = current_provenance("");
  EXPECT_NE(to_markdown(matrix, provenance).find(row.killing_feature->name), std::string::npos);
  EXPECT_EQ(parse_json(to_json(matrix, provenance))["mutants"][0]["feature"]["name"],
            row.killing_feature->name);
}

TEST(KillMatrix, CountsTheFeaturesOfTheCasesThatTheCampaignRanBeforeALateKill) {
  int late = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const KillMatrix matrix = matrix_of_padded_keys(1, seed);
    const KernelResult& campaign = matrix.campaign.front();
    if (!campaign.failure || campaign.failing_case < 2) continue;
    ++late;
    EXPECT_EQ(matrix.mutants.front().features.all.cases, campaign.failing_case + 1);
    EXPECT_EQ(matrix.mutants.front().features.all.kills, 1);
  }
  EXPECT_GT(late, 0);
}

TEST(KillMatrix, GradientsHaveRulesOfTheirOwnAndMoreCasesOfTheCorrectKernelWhereAsked) {
  const KillMatrix matrix = make_kill_matrix({.operation = &backward_operation,
                                              .kernels = "mutant/b01_delta_missing",
                                              .cases = 6,
                                              .normal_cases = 3,
                                              .correct_cases = 9,
                                              .shrink_calls = 0});
  ASSERT_EQ(matrix.mutants.size(), 1U);
  ASSERT_EQ(matrix.correct.size(), 1U);
  EXPECT_TRUE(matrix.is_as_expected());
  EXPECT_EQ(matrix.mutants[0].cases, 6);
  EXPECT_EQ(matrix.correct[0].cases, 9);
  EXPECT_EQ(matrix.correct[0].normal_cases, 3);
  const std::span<const PeerRule> rules = peer_rules(backward_operation);
  ASSERT_EQ(matrix.mutants[0].columns.size(), rules.size() + 3);
  ASSERT_EQ(matrix.mutants[0].on_normal.size(), rules.size());
  const Provenance provenance = current_provenance("");
  const std::string text = to_markdown(matrix, provenance);
  const auto json = parse_json(to_json(matrix, provenance));
  EXPECT_EQ(json["operation"], "backward");
  EXPECT_NE(text.find("`attest mutants --operation backward --cases 6 --normal-cases 3 "
                      "--correct-cases 9 --seed 1` at commit " +
                      provenance.commit),
            std::string::npos)
      << text.substr(0, 300);
  EXPECT_NE(text.find("| rule | on dQ | on dK and dV | source |"), std::string::npos);
  for (const PeerRule& rule : rules) {
    EXPECT_NE(text.find(rule.source), std::string::npos) << rule.name;
    EXPECT_TRUE(json["mutants"][0]["rules"].contains(rule.name)) << rule.name;
  }
}

TEST(KillMatrix, AGlobWithoutMutantsIsRefused) {
  EXPECT_THROW((void)make_kill_matrix(
                   {.operation = &backward_operation, .kernels = "mutant/m05_padded_keys*"}),
               InvalidInput);
  EXPECT_THROW((void)make_kill_matrix({.kernels = "k3*"}), InvalidInput);
}

}  // namespace
}  // namespace attest
