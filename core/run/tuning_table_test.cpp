#include "core/run/tuning_table.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "core/base/error.hpp"
#include "core/base/temporary_folder.hpp"
#include "core/base/text_file.hpp"

namespace attest {
namespace {

TunedPlan row_for(const std::string& problem, const std::string& plan = "qt64 kt64") {
  return {.key = tuning_key("kernel", problem_from_string(problem), "NVIDIA H200"),
          .problem = problem,
          .plan = plan,
          .time_ms = 0.1,  // no double prints short that does not read back
          .time_low_ms = 0.09999999999999999,
          .time_high_ms = 1.0 / 3.0,
          .rate_tflops = 300,
          .runner_up = "qt128 kt32",
          .runner_up_ratio = 1.0625,
          .plans = 12,
          .refused = 1,
          .commit = "abc1234",
          .build = "nvcc \"13.0\", Release",
          .date = "2026-11-22T03:00:00Z"};
}

TuningTable table_of_two() {
  TuningTable table;
  add_row(table, row_for("b1 h8 n4096 d64"));
  add_row(table, row_for("b1 h8 n4096 d64 causal_top_left bf16"));
  return table;
}

std::string complaint_about(const std::string& text) {
  try {
    (void)tuning_table_from_json(text, "here.json");
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

/// The text of table_of_two with one place changed.
std::string with(const std::string& from, const std::string& to) {
  std::string text = to_json(table_of_two());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(TuningTable, SurvivesWritingAndReading) {
  for (const TuningTable& table : {TuningTable{}, table_of_two()}) {
    EXPECT_EQ(tuning_table_from_json(to_json(table), "here"), table);
  }
}

TEST(TuningTable, HasOneRowAKeyWhateverTheOrderOfTheRaces) {
  const TunedPlan a = row_for("b1 h8 n64 d64"), b = row_for("b1 h8 n64 d64 fp16"),
                  c = row_for("b1 h8 n64 d64 bf16"), again = row_for("b1 h8 n64 d64", "qt32");
  TuningTable one, other;
  for (const TunedPlan& row : {a, b, c, again}) add_row(one, row);
  for (const TunedPlan& row : {c, a, again, b}) add_row(other, row);
  EXPECT_EQ(one, other);
  EXPECT_EQ(one.rows.size(), 3U);
  EXPECT_NE(to_json(one).find("\"plan\":\"qt32\""), std::string::npos);
}

TEST(TuningTable, WhatIsWrongIsNamedWithFileRowAndField) {
  EXPECT_EQ(complaint_about("{"),
            "here.json: not JSON at byte 2; a table of tuned Plans is expected");
  EXPECT_EQ(complaint_about("[]"), "here.json: is []; allowed: an object");
  EXPECT_EQ(complaint_about(with("\"rows\": [", "\"row\": [")),
            "here.json: key 'rows' is missing; keys that are there: schema, row");
  EXPECT_EQ(complaint_about(with("\"schema\": 1", "\"schema\": 7")),
            "here.json: 'schema' is 7; allowed: 1, which this program reads");
  EXPECT_EQ(
      complaint_about(with("\"head_dim\":64", "\"head_dim\":\"x\"")),
      "here.json: row 1: 'head_dim' is \"x\"; allowed: an integer from -1 to 1152921504606846976");
  EXPECT_EQ(
      complaint_about(with("\"head_dim\":64", "\"head_dim\":1e300")),
      "here.json: row 1: 'head_dim' is 1e+300; allowed: an integer from -1 to 1152921504606846976");
  // Converted unseen it becomes -1, which is allowed.
  EXPECT_EQ(complaint_about(with("\"head_dim\":64", "\"head_dim\":18446744073709551615")),
            "here.json: row 1: 'head_dim' is 18446744073709551615; allowed: an integer from -1 to "
            "1152921504606846976");
  EXPECT_EQ(complaint_about(with("\"time_ms\":0.1", "\"time_ms\":-1")),
            "here.json: row 1: 'time_ms' is -1; allowed: a number from 0");
  EXPECT_EQ(complaint_about(with("\"plan\":\"qt64 kt64\"", "\"plan\":null")),
            "here.json: row 1: 'plan' is null; allowed: a string");
  EXPECT_TRUE(complaint_about(with("\"date\":", "\"day\":"))
                  .starts_with("here.json: row 1: key 'date' is missing; keys that are there: "));
  EXPECT_TRUE(
      complaint_about(with("\"date\":", "\"colour\":\"red\",\"date\":"))
          .starts_with("here.json: row 1: key 'colour' is unknown; allowed: kernel, gpu, "));
  EXPECT_EQ(complaint_about(with("\"date\":", "\"gpu\":\"T4\",\"date\":")),
            "here.json: key 'gpu' is given twice in one object");
  EXPECT_EQ(complaint_about(with("\"element_type\":\"bf16\",\"mask\":\"causal\"",
                                 "\"element_type\":\"fp32\",\"mask\":\"none\"")),
            "here.json: row 2: has the key of an earlier row");
}

TEST(TuningTable, ThatIsNoFileYetIsEmptyAndAFolderIsNone) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_tuning_table(folder / "none.json"), TuningTable{});
  write_whole_file(folder / "two.json", to_json(table_of_two()));
  EXPECT_EQ(read_tuning_table(folder / "two.json"), table_of_two());
  EXPECT_THROW((void)read_tuning_table(folder), MachineError);
}

TEST(TuningTable, OfTheRepositoryIsEmbeddedAndItsRowsAreWrittenBackByteForByte) {
  const std::string path = std::string(ATTEST_SOURCE_DIR) + "/gpu/kernels/tuned_plans.json";
  const TuningTable table = read_tuning_table(path);
  EXPECT_EQ(embedded_tuning_table(), table);
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const TunedPlan& row : table.rows) {
    const std::string alone = to_json(TuningTable{.rows = {row}});
    const std::string line = alone.substr(alone.find('\n'), alone.rfind("\n]") - alone.find('\n'));
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace attest
