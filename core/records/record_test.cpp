#include "core/records/record.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/temporary_folder.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

Record example() {
  return {.kind = "verify",
          .subject = Case{.kernel = "naive_rows",
                          .problem = {.query_len = 33, .key_len = 65},
                          .plan = {.query_tile = 32, .key_tile = 16},
                          .layouts = {},
                          .inputs = {.family = "normal", .seed = 7}},
          .verdict = "passed",
          .labels = {{"executor", "simt"}, {"law", "within the bound"}},
          .measurements = {{"error_over_bound", 0.25, "1"}, {"time", 0.1, "ms"}},
          .provenance = {.commit = "abc", .dirty = true, .compiler = "g++", .date = "2026-01-01"}};
}

class RecordFileTest : public testing::Test {
 protected:
  [[nodiscard]] fs::path path() const { return folder_ / "deep" / "er" / "records.jsonl"; }
  [[nodiscard]] std::string text() const {
    std::ostringstream content;
    content << std::ifstream(path()).rdbuf();
    return content.str();
  }
  void put(const std::string& content) const {
    fs::create_directories(path().parent_path());
    std::ofstream(path(), std::ios::binary) << content;
  }

 private:
  TemporaryFolder folder_;
};

template <typename Error, typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Record, every_field_survives_the_round_trip) {
  const Record want = example();
  const Record got = record_from_json(to_json(want), "test");
  EXPECT_EQ(got.kind, want.kind);
  EXPECT_EQ(got.subject, want.subject);
  EXPECT_EQ(got.verdict, want.verdict);
  EXPECT_EQ(got.labels, want.labels);
  EXPECT_EQ(got.provenance, want.provenance);
  ASSERT_EQ(got.measurements.size(), 2U);
  EXPECT_EQ(got.measurements[1].name, "time");
  EXPECT_EQ(got.measurements[1].unit, "ms");
  EXPECT_FALSE(record_from_json(to_json(Record{}), "test").subject.has_value());
}

TEST(Record, every_double_survives_as_the_same_bits) {
  using Limits = std::numeric_limits<double>;
  for (const double value : {0.1, -0.0, 1.0 / 3, 1.0, 1e22, Limits::max(), Limits::denorm_min(),
                             Limits::infinity(), -Limits::infinity()}) {
    const Record record{.measurements = {{"x", value, "1"}}};
    const Record got = record_from_json(to_json(record), "test");
    EXPECT_EQ(std::bit_cast<std::uint64_t>(got.measurements.at(0).value),
              std::bit_cast<std::uint64_t>(value))
        << value;
  }
  const Record nan{.measurements = {{"x", Limits::quiet_NaN(), "1"}}};
  EXPECT_NE(to_json(nan).find("\"nan\""), std::string::npos);
  EXPECT_TRUE(std::isnan(record_from_json(to_json(nan), "test").measurements.at(0).value));
}

TEST(Record, is_one_line_whatever_the_text_holds) {
  const Record record{.labels = {{"message", "two\nlines and a bad byte \xff"}}};
  const std::string line = to_json(record);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_TRUE(record_from_json(line, "test").labels.at("message").starts_with("two\nlines"));
}

TEST(Record, a_record_that_is_not_exactly_one_is_refused_with_place_and_key) {
  const std::string good = to_json(example());
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    line.replace(line.find(from), from.size(), to);
    return message_of<InvalidInput>([&] { (void)record_from_json(line, "r.jsonl:3"); });
  };
  EXPECT_EQ(refusal("\"schema\":1", "\"schema\":2"),
            "r.jsonl:3: schema version 2, but this program reads version 1");
  EXPECT_EQ(refusal("\"kind\"", "\"kinds\""),
            "r.jsonl:3: key 'kind' is missing; keys that are there: schema, kinds, case, verdict, "
            "labels, measurements, provenance");
  EXPECT_EQ(refusal("\"kind\"", "\"colour\":1,\"kind\""),
            "r.jsonl:3: key 'colour' is unknown; allowed: schema, kind, case, verdict, labels, "
            "measurements, provenance");
  EXPECT_EQ(refusal("\"passed\"", "5"), "r.jsonl:3: 'verdict' is 5; allowed: a string");
  EXPECT_EQ(refusal("0.25", "\"much\""),
            "r.jsonl:3: measurements[0]: 'value' is \"much\"; allowed: a number, \"nan\", "
            "\"inf\" or \"-inf\"");
  EXPECT_NE(refusal("\"naive_rows\"", "5").find("r.jsonl:3: case"), std::string::npos);
  EXPECT_EQ(message_of<InvalidInput>([] { (void)record_from_json("[1]", "r.jsonl:3"); }),
            "r.jsonl:3: is [1]; allowed: an object");
  EXPECT_NE(message_of<InvalidInput>([] {
              (void)record_from_json("{", "r.jsonl:3");
            }).find("r.jsonl:3: not JSON"),
            std::string::npos);
}

TEST_F(RecordFileTest, what_was_written_is_read_and_a_second_run_appends) {
  for (int run = 0; run < 2; ++run) {
    RecordWriter writer(path(), 2);
    for (int i = 0; i < 3; ++i) writer.write(example());
    writer.close();
  }
  const RecordFile file = read_records(path());
  EXPECT_EQ(file.records.size(), 6U);
  EXPECT_FALSE(file.truncated.has_value());
}

TEST_F(RecordFileTest, a_last_line_cut_at_any_byte_costs_only_that_record) {
  const std::string whole = to_json(example()) + "\n";
  for (std::size_t kept = 1; kept < whole.size() - 1; kept += 13) {
    put(whole + whole.substr(0, kept));
    const RecordFile file = read_records(path());
    EXPECT_EQ(file.records.size(), 1U);
    ASSERT_TRUE(file.truncated.has_value()) << kept;
    EXPECT_NE(file.truncated->find("records.jsonl:2"), std::string::npos) << *file.truncated;
  }
}

TEST_F(RecordFileTest, a_writer_resumes_after_a_cut_line_without_damage) {
  const std::string whole = to_json(example()) + "\n";
  // Everything from one byte to all but the newline; the whole record without newline counts as a
  // record.
  for (const std::size_t kept : {std::size_t{1}, whole.size() / 2, whole.size() - 1}) {
    put(whole + whole.substr(0, kept));
    const std::size_t before = read_records(path()).records.size();
    RecordWriter(path()).write(example());
    const RecordFile file = read_records(path());
    EXPECT_EQ(file.records.size(), before + 1) << kept;
    EXPECT_FALSE(file.truncated.has_value());
  }
}

TEST_F(RecordFileTest, a_cut_line_longer_than_the_read_block_is_removed_too) {
  Record long_record = example();
  long_record.labels["message"] = std::string(10000, 'x');
  const std::string whole = to_json(example()) + "\n";
  put(whole + to_json(long_record).substr(0, 9000));
  RecordWriter(path()).write(example());
  EXPECT_EQ(text(), whole + whole);
}

TEST_F(RecordFileTest, a_file_that_is_no_record_file_is_left_alone) {
  put("my notes");
  const std::string message = message_of<InvalidInput>([&] { RecordWriter writer(path()); });
  EXPECT_NE(message.find(path().string()), std::string::npos) << message;
  EXPECT_EQ(text(), "my notes");
}

TEST_F(RecordFileTest, a_bad_line_in_the_middle_is_named) {
  const std::string whole = to_json(example()) + "\n";
  put(whole + "\n" + "{\"schema\":1,\n" + whole);
  const std::string message = message_of<InvalidInput>([&] { (void)read_records(path()); });
  EXPECT_NE(message.find("records.jsonl:3: not JSON"), std::string::npos) << message;
}

TEST_F(RecordFileTest, a_second_writer_on_the_same_file_is_refused) {
  const RecordWriter first(path());
  const std::string message = message_of<MachineError>([&] { RecordWriter second(path()); });
  EXPECT_NE(message.find("another run is writing"), std::string::npos) << message;
}

TEST_F(RecordFileTest, threads_do_not_tear_each_others_lines) {
  RecordWriter writer(path());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&writer] {
      for (int i = 0; i < 25; ++i) writer.write(example());
    });
  for (std::thread& thread : threads) thread.join();
  writer.close();
  EXPECT_EQ(read_records(path()).records.size(), 100U);
}

TEST_F(RecordFileTest, machine_trouble_names_the_path_and_the_reason) {
  put("");
  const auto refusal = [](const fs::path& where) {
    return message_of<MachineError>([&] { RecordWriter writer(where); });
  };
  const fs::path below_a_file = path() / "x.jsonl";
  EXPECT_NE(refusal(below_a_file).find(path().string()), std::string::npos);
  const std::string on_a_folder = refusal(path().parent_path());
  EXPECT_NE(on_a_folder.find("Is a directory"), std::string::npos) << on_a_folder;
  EXPECT_NE(message_of<MachineError>([&] {
              (void)read_records(below_a_file);
            }).find(below_a_file.string()),
            std::string::npos);
  EXPECT_NE(message_of<MachineError>([&] {
              (void)read_records(path().parent_path());
            }).find("cannot be read"),
            std::string::npos);
}

TEST(RecordWriter, a_full_disk_is_reported_not_swallowed) {
  RecordWriter writer("/dev/full");  // the kernel's disk that is always full
  const std::string message = message_of<MachineError>([&] { writer.write(example()); });
  EXPECT_NE(message.find("/dev/full: cannot write a record: No space left"), std::string::npos)
      << message;
}

TEST(Provenance, says_what_was_built_and_when_and_where) {
  const Provenance p = current_provenance("a device");
  EXPECT_FALSE(p.commit.empty());
  EXPECT_FALSE(p.compiler.empty());
  EXPECT_FALSE(p.build_type.empty());
  EXPECT_NE(p.host.find("threads"), std::string::npos);
  EXPECT_EQ(p.device, "a device");
  ASSERT_EQ(p.date.size(), 20U) << p.date;  // 2026-01-31T12:34:56Z
  EXPECT_EQ(p.date[10], 'T');
  EXPECT_EQ(p.date.back(), 'Z');
}

}  // namespace
}  // namespace attest
