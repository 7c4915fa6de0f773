#include "gpu/microbench/benchmark.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include "core/base/error.hpp"

namespace attest::microbench {
namespace {

const std::array<Benchmark, 3> three{{{"a", "", nullptr}, {"b", "", nullptr}, {"c", "", nullptr}}};

std::string names_of(const std::vector<Benchmark>& benchmarks) {
  std::string names;
  for (const Benchmark& benchmark : benchmarks) names += benchmark.name;
  return names;
}

std::string chosen_of_three(const std::vector<std::string>& names) {
  return names_of(chosen(three, names));
}

TEST(ChosenBenchmarks, AreAllWhenNoneIsNamed) {
  EXPECT_EQ(chosen_of_three({}), "abc");
}

TEST(ChosenBenchmarks, KeepTheirOrderAndComeOnce) {
  EXPECT_EQ(chosen_of_three({"c", "a", "c"}), "ac");
}

TEST(ChosenBenchmarks, RefuseANameThatDoesNotExistAndSayWhichDo) {
  try {
    chosen_of_three({"a", "B"});
    FAIL() << "no exception";
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), "benchmark 'B' does not exist; allowed: a, b, c");
  }
}

TEST(MicrobenchRecords, BecomeTableRowsThatNameWhatWasReadWithUnitAndClock) {
  const Reading reading{"ex2", 15.9961, "lanes/clk/SM", 15, 16, 5, 1979.7};
  EXPECT_EQ(table_row(record_of(three[0], reading, {})), "| a | ex2 | 16 lanes/clk/SM | 1980 |");
}

TEST(MicrobenchRecords, OfAnotherKindAreRefused) {
  Record record;
  record.kind = "verify";
  EXPECT_THROW(static_cast<void>(table_row(record)), InvalidInput);
}

TEST(MicrobenchTable, InTheReadmeHoldsNothingThatTheRecordDoesNot) {
  const std::string root = ATTEST_SOURCE_DIR;
  std::set<std::string> recorded, starts;
  for (const Record& record :
       read_records(root + "/experiments/results/h200/microbench.jsonl").records) {
    recorded.insert(table_row(record));
    starts.insert("| " + record.labels.at("benchmark") + " |");
  }
  std::ifstream readme(root + "/gpu/microbench/README.md");
  int rows = 0;
  for (std::string line; std::getline(readme, line);) {
    const bool is_row = std::ranges::any_of(
        starts, [&](const std::string& start) { return line.starts_with(start); });
    if (!is_row) continue;
    ++rows;
    EXPECT_TRUE(recorded.contains(line)) << line;
  }
  EXPECT_GT(rows, 0);
}

}  // namespace
}  // namespace attest::microbench
