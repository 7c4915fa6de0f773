#include "experiments/study/results_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "core/base/error.hpp"
#include "core/base/temporary_folder.hpp"

namespace attest {
namespace {

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "accepted";
}

struct AResultsFolder : testing::Test {
  TemporaryFolder root;
  ResultsFolder folder{root / "study"};
  RunSettings settings{.name = "a",
                       .program = "abc",
                       .executor = "simt",
                       .device = "t4",
                       .gpu = "a GPU",
                       .seed = 7,
                       .time_budget_s = 2.5};

  static Record record_of(const std::string& point, const std::string& skipped_by = "") {
    Record record{.kind = "study", .labels = {{"point", point}}};
    if (!skipped_by.empty()) record.labels["skipped_by"] = skipped_by;
    return record;
  }
};

TEST_F(AResultsFolder, KeepsTheStudyAndHowItWasBegun) {
  folder.begin("name: a\n", settings, {});
  EXPECT_EQ(folder.study(), "name: a\n");
  EXPECT_EQ(folder.settings().name, "a");
  EXPECT_EQ(folder.settings().program, "abc");
  EXPECT_EQ(folder.settings().executor, "simt");
  EXPECT_EQ(folder.settings().device, "t4");
  EXPECT_EQ(folder.settings().gpu, "a GPU");
  EXPECT_EQ(folder.settings().seed, 7U);
  EXPECT_EQ(folder.settings().time_budget_s, 2.5);
}

TEST_F(AResultsFolder, TakesNoOtherStudyAndNoSecondBeginning) {
  folder.begin("name: a\n", settings, {});
  RecordWriter(folder.records_of({}), 1).write(record_of("p"));
  EXPECT_NE(message_of([&] {
              folder.begin("name: b\n", settings, {});
            }).find("holds the results of another study; allowed:"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              folder.begin("name: a\n", settings, {});
            }).find("holds results already; allowed: attest study resume"),
            std::string::npos);
}

TEST_F(AResultsFolder, ShardsOfOneCountBeginTogetherAndOthersDoNot) {
  folder.begin("name: a\n", settings, {.index = 0, .count = 2});
  RecordWriter first(folder.records_of({.index = 0, .count = 2}), 1);
  first.write(record_of("p"));
  folder.begin("name: a\n", settings, {.index = 1, .count = 2});
  RecordWriter(folder.records_of({.index = 1, .count = 2}), 1).write(record_of("q"));
  EXPECT_EQ(finished_points(folder.records()), (std::set<std::string>{"p", "q"}));
  EXPECT_NE(message_of([&] {
              folder.begin("name: a\n", settings, {.index = 0, .count = 3});
            }).find("holds results already"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "records.2-of-2.jsonl"));
}

TEST_F(AResultsFolder, PartsBegunWithOtherSettingsAreRefusedByNameAndBothValues) {
  const Shard first{.index = 0, .count = 2}, second{.index = 1, .count = 2};
  folder.begin("name: a\n", settings, first);
  EXPECT_EQ(message_of([&] { folder.begin("name: a\n", settings, second); }), "accepted");
  const auto refusal = [&](auto change) {
    RunSettings other = settings;
    change(other);
    return message_of([&] { folder.begin("name: a\n", other, second); });
  };
  const std::vector<std::pair<std::string, std::string>> refusals{
      {refusal([](RunSettings& s) { s.seed = 8; }), "with --seed 7, this is 8"},
      {refusal([](RunSettings& s) { s.program = "def"; }), "of commit abc, this is def"},
      {refusal([](RunSettings& s) { s.executor = "gpu"; }), "with --executor simt, this is gpu"},
      {refusal([](RunSettings& s) { s.gpu = ""; }), "on a GPU, this is no GPU"},
      {refusal([](RunSettings& s) { s.gpu = "other"; }), "on a GPU, this is other"},
      {refusal([](RunSettings& s) { s.device = "h200"; }), "with --device t4, this is h200"},
      {refusal([](RunSettings& s) { s.name = "b"; }), "under the name a, this is b"}};
  for (const auto& [message, part] : refusals) {
    EXPECT_NE(message.find(part + "; allowed: the same, or a new folder"), std::string::npos)
        << message;
  }
  EXPECT_EQ(refusal([](RunSettings& s) { s.time_budget_s = 9; }), "accepted");
  EXPECT_EQ(folder.settings().seed, 7U) << "the first one counts";
}

TEST_F(AResultsFolder, WhatEndedBeforeItsFirstRecordIsBegunAnewByOneWriterAlone) {
  folder.begin("name: a\n", settings, {});
  settings.executor = "gpu";
  folder.begin("name: b\n", settings, {});
  EXPECT_EQ(folder.study(), "name: b\n");
  EXPECT_EQ(folder.settings().executor, "gpu");
  const RecordWriter running(folder.records_of({.index = 0, .count = 2}), 1);
  EXPECT_NE(message_of([&] { folder.begin("name: a\n", settings, {}); }).find("another study"),
            std::string::npos)
      << "its writer is at work";
}

TEST_F(AResultsFolder, FilesWithoutARecordAreNoResults) {
  RecordWriter(folder.records_of({}), 1).close();  // killed before its first point
  RecordWriter(folder.records_of({.index = 0, .count = 3}), 1).close();
  EXPECT_EQ(message_of([&] { folder.begin("name: a\n", settings, {}); }), "accepted");
}

TEST_F(AResultsFolder, TwoWritersAreOneClearLine) {
  folder.begin("name: a\n", settings, {});
  const RecordWriter writer(folder.records_of({}), 1);
  const std::string same = message_of([&] { RecordWriter again(folder.records_of({}), 1); });
  EXPECT_NE(same.find("another run is writing to it"), std::string::npos) << same;
  const std::string other =
      message_of([&] { folder.require_no_other_writer({.index = 0, .count = 4}); });
  EXPECT_NE(other.find("records.jsonl: another run is writing to it"), std::string::npos) << other;
  EXPECT_EQ(message_of([&] { folder.require_no_other_writer({}); }), "accepted");
  const RecordWriter sibling(folder.records_of({.index = 2, .count = 4}), 1);
  EXPECT_NE(message_of([&] { folder.require_no_other_writer({}); }).find("another run"),
            std::string::npos)
      << "a rank still works";
}

TEST_F(AResultsFolder, ATruncatedLastLineIsRepaired) {
  folder.begin("name: a\n", settings, {});
  const auto file = folder.records_of({});
  RecordWriter(file, 1).write(record_of("p"));
  RecordWriter(file, 1).write(record_of("q"));
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 20);
  EXPECT_EQ(finished_points(folder.records()), std::set<std::string>{"p"});
  RecordWriter(file, 1).write(record_of("r"));
  EXPECT_EQ(finished_points(folder.records()), (std::set<std::string>{"p", "r"}));
}

TEST_F(AResultsFolder, PointsThatTheBudgetLeftOutAreNotFinished) {
  EXPECT_EQ(finished_points({record_of("p"), record_of("q", "budget"), record_of("r", "kernel")}),
            (std::set<std::string>{"p", "r"}));
}

TEST_F(AResultsFolder, AFolderThatHoldsNoStudyGetsOneLine) {
  EXPECT_NE(message_of([&] { (void)folder.study(); }).find("holds no study to resume"),
            std::string::npos);
  folder.begin("name: a\n", settings, {});
  for (const char* const text : {"", "{", "[]", "{\"program\": 3}"}) {
    std::ofstream(folder.path() / "run.json") << text;
    EXPECT_NE(message_of([&] { (void)folder.settings(); }).find("run.json"), std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace attest
