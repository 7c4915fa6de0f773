#include "experiments/study/answer.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace attest {
namespace {

Record timed(std::int64_t query_tile, double low, double mid, double high) {
  Record record;
  record.kind = "study";
  record.verdict = "passed";
  record.subject = Case{.kernel = "k5_padded_tiles", .plan = {.query_tile = query_tile}};
  record.labels = {
      {"role", "point"}, {"executor", "gpu"}, {"axis.plan.query_tile", std::to_string(query_tile)}};
  record.measurements = {{"time", mid, "ms"},
                         {"time_low", low, "ms"},
                         {"time_high", high, "ms"},
                         {"rate", 100 / mid, "TFLOP/s"}};
  return record;
}

StudyAnswer answer_to(const std::string& that, const std::vector<Record>& records,
                      const std::string& rest = "") {
  const ParsedStudy parsed = parse_study(
      "question: Q?\nkernels: k5_padded_tiles\nplan: {query_tile: [32, 64]}\nexpect:\n  - {that: "
      "'" +
          that + "'" + rest + "}\n",
      "test");
  for (const StudyError& error : parsed.errors) ADD_FAILURE() << to_string(error, "test");
  return parsed.spec ? answer(parsed.spec->expect.at(0), records) : StudyAnswer{};
}
std::string kind_of(const std::string& that, const std::vector<Record>& records,
                    const std::string& rest = "") {
  return std::string(name_of(answer_to(that, records, rest).kind));
}

const std::vector<Record> results{timed(32, 9.9, 10, 10.1), timed(64, 4.9, 5, 5.1)};

TEST(Answers, It_holds_or_is_refuted_only_where_the_intervals_agree) {
  EXPECT_EQ(kind_of("ratio(time, plan.query_tile, 32, 64) > 1.9", results), "holds");
  EXPECT_EQ(kind_of("ratio(time, plan.query_tile, 32, 64) > 2", results), "undecided");
  EXPECT_EQ(kind_of("ratio(time, plan.query_tile, 32, 64) > 2.1", results), "refuted");
  EXPECT_EQ(kind_of("ratio(time, plan.query_tile, 32, 64) == 2", results, ", tolerance: 5%"),
            "holds");
}

TEST(Answers, It_says_what_was_found) {
  EXPECT_EQ(answer_to("min(time) < 7ms", results).sentence, "5 (4.9 to 5.1) < 7");
  EXPECT_EQ(answer_to("min(time) > 7ms", results, ", tolerance: 1%").sentence,
            "5 (4.9 to 5.1), not > 7, tolerance 1 %");
  EXPECT_EQ(answer_to("all(time < 7ms)", results).sentence, "1 of 2 points");
  EXPECT_EQ(answer_to("min(power) > 9 or max(time) > 7ms", results).sentence,
            "10 (9.9 to 10.1) > 7");
  EXPECT_EQ(answer_to("max(time) > 7ms and count() == 2", results).sentence,
            "10 (9.9 to 10.1) > 7 and 2 == 2");
}

TEST(Answers, What_was_not_measured_is_no_result) {
  EXPECT_EQ(kind_of("min(power) > 9", results), "no_results");
  EXPECT_EQ(answer_to("min(power) > 9", results).sentence, "nothing is known of power");
  EXPECT_EQ(kind_of("min(time where plan.warps == 8) > 0ms", results), "no_results");
  EXPECT_EQ(kind_of("min(time) > 0ms", {}), "no_results");
}

TEST(Answers, Where_nothing_was_timed_it_says_so) {
  Record modelled = timed(32, 1, 1, 1);
  modelled.measurements = {{"model.flops", 4, "1"}};
  EXPECT_EQ(answer_to("min(time) < 7ms", {modelled}).sentence,
            "nothing is known of time, as nothing was timed");
  EXPECT_EQ(answer_to("min(power) < 7", {modelled}).sentence,
            "nothing is known of power, as nothing was timed");
  EXPECT_EQ(answer_to("min(error.rmse) < 7", {modelled}).sentence,
            "nothing is known of error.rmse");
}

TEST(Answers, Points_without_the_value_are_counted_apart) {
  Record without = timed(64, 1, 1, 1);
  without.measurements.clear();
  std::vector<Record> records = results;
  records.push_back(without);
  EXPECT_EQ(answer_to("all(time > 1ms)", records).sentence, "2 of 2 points; 1 more not measured");
  EXPECT_EQ(answer_to("all(time > 7ms where plan.query_tile == 64)", records).sentence,
            "0 of 1 point; 1 more not measured");
}

TEST(Answers, Only_points_that_were_timed_count) {
  Record baseline = timed(32, 1, 1, 1), refused = timed(32, 1, 1, 1), other = timed(32, 1, 1, 1);
  baseline.labels["role"] = "baseline";
  refused.verdict = "failed";
  other.kind = "study_summary";
  std::vector<Record> records = results;
  records.insert(records.end(), {baseline, refused, other});
  EXPECT_EQ(kind_of("count() == 2 and min(time) > 4ms", records), "holds");
}

TEST(Answers, A_rate_is_as_uncertain_as_its_time) {
  EXPECT_EQ(kind_of("max(rate) > 19.5", results), "holds");
  EXPECT_EQ(kind_of("max(rate) > 19.7", results), "undecided");
}

TEST(Answers, A_measurement_that_is_not_a_number_never_decides) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* that :
       {"max(time) > 0ms", "max(time) < 1s", "all(time > 0ms)", "not all(time > 0ms)"}) {
    EXPECT_EQ(kind_of(that, {timed(32, nan, nan, nan)}), "no_results") << that;
  }
  EXPECT_EQ(kind_of("max(time) > 0ms", {timed(32, 1, 2, nan)}), "no_results");
  EXPECT_EQ(kind_of("max(time) > 0ms", {timed(32, nan, 2, 3)}), "no_results");
}

TEST(Answers, Every_expectation_has_a_record) {
  const ParsedStudy parsed = parse_study(
      "question: Q?\nkernels: k5_padded_tiles\nexpect:\n"
      "  - {that: min(time) < 7ms, because: it is fast, claim: Q3.20}\n  - that: min(power) > 9\n",
      "test");
  const std::vector<Record> answers = answer_records(parsed.spec.value(), results);
  ASSERT_EQ(answers.size(), 2U);
  const std::map<std::string, std::string> labels{
      {"study", "test"},  {"that", "min(time) < 7ms"}, {"because", "it is fast"},
      {"claim", "Q3.20"}, {"answer", "holds"},         {"found", "5 (4.9 to 5.1) < 7"}};
  EXPECT_EQ(answers[0].kind, "study_answer");
  EXPECT_EQ(answers[0].labels, labels);
  EXPECT_EQ(answers[1].labels.at("answer"), "no_results");
}

}  // namespace
}  // namespace attest
