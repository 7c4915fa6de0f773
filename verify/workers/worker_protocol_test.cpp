#include "verify/workers/worker_protocol.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.hpp"

namespace attest {
namespace {

TEST(WorkerProtocol, AnAnswerArrivesAsItWasSentEvenWithNaNAndInfinities) {
  CaseAnswer answer;
  answer.verdict.verdict = Verdict::failed;
  answer.verdict.checked_laws = {"a", "b"};
  answer.verdict.worst_over_bound.raise("o", std::numeric_limits<double>::infinity());
  answer.verdict.worst_over_bound.raise("lse", std::nextafter(0.1, 1.0));
  answer.verdict.declined = {"law: cannot be captured"};
  answer.verdict.reason = "line\nbreak \xff not UTF-8";
  answer.verdict.failure =
      Failure{.law = "a",
              .the_case = {.kernel = "k", .inputs = {.seed = ~0ULL}},
              .check = Check::failed_at("LSE",
                                        {.index = {1, 2, 3, 4},
                                         .got = std::numeric_limits<double>::quiet_NaN(),
                                         .want = -std::numeric_limits<double>::infinity(),
                                         .bound = 0,
                                         .ratio = std::numeric_limits<double>::infinity()},
                                        "outside"),
              .kind = Verdict::failed,
              .repetition = "not repeated",
              .misreadings = {"V read without the table", "K read so"}};
  answer.certificate = {.rows = 1, .worst_ratio = 0.5};
  answer.judgement =
      Judgement{.rejected = {true, false, false, false, false, false, true, false}, .laws = {"b"}};
  answer.seconds[2] = 1e-7;
  const std::string line = encode(answer);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const CaseAnswer read = answer_from_line(line);
  EXPECT_EQ(encode(read), line);
  EXPECT_EQ(read.verdict.worst_over_bound.of("o"), answer.verdict.worst_over_bound.of("o"));
  EXPECT_EQ(read.verdict.worst_over_bound.of("lse"), answer.verdict.worst_over_bound.of("lse"));
  EXPECT_EQ(read.verdict.failure->the_case, answer.verdict.failure->the_case);
  EXPECT_TRUE(std::isnan(read.verdict.failure->check.worst.got));
  EXPECT_EQ(read.verdict.failure->check.worst.want, answer.verdict.failure->check.worst.want);
  EXPECT_EQ(read.verdict.failure->repetition, "not repeated");
  EXPECT_EQ(read.verdict.failure->misreadings, answer.verdict.failure->misreadings);
  EXPECT_EQ(read.verdict.declined, answer.verdict.declined);
  ASSERT_TRUE(read.judgement.has_value());
  EXPECT_EQ(read.judgement->rejected, answer.judgement->rejected);
  EXPECT_EQ(read.judgement->laws, answer.judgement->laws);
  EXPECT_EQ(read.seconds, answer.seconds);
}

TEST(WorkerProtocol, ATaskAndASetupArriveAsTheyWereSent) {
  const CaseTask task{
      .executor = Executor::simt,
      .the_case = {.kernel = "k", .plan = {.key_tile = 8}},
      .laws = {.glob = "x*", .layers = {Layer::bound}, .every_law = true, .asks_misreadings = true},
      .judges = Judges::peers,
      .certify = ~0ULL};
  const CaseTask read = task_from_line(encode(task));
  EXPECT_EQ(read.executor, task.executor);
  EXPECT_EQ(read.the_case, task.the_case);
  EXPECT_EQ(read.laws.glob, task.laws.glob);
  EXPECT_EQ(read.laws.layers, task.laws.layers);
  EXPECT_EQ(read.laws.every_law, task.laws.every_law);
  EXPECT_EQ(read.laws.asks_misreadings, task.laws.asks_misreadings);
  EXPECT_EQ(read.judges, task.judges);
  EXPECT_EQ(read.certify, task.certify);
  const WorkerSetup setup =
      setup_from_line(encode(WorkerSetup{.plugins = {"a b", "c\n"}, .inputs_file = "d"}));
  EXPECT_EQ(setup.plugins, (std::vector<std::string>{"a b", "c\n"}));
  EXPECT_EQ(setup.inputs_file, "d");
}

TEST(WorkerProtocol, ErrorsKeepTheirKind) {
  const auto send = [](WorkerError::Kind kind) {
    if (const auto error = error_from_line(encode(WorkerError{kind, "a"}))) rethrow(*error);
  };
  EXPECT_THROW(send(WorkerError::Kind::machine), MachineError);
  EXPECT_THROW(send(WorkerError::Kind::input), InvalidInput);
  EXPECT_THROW(send(WorkerError::Kind::kernel), KernelError);
  EXPECT_THROW(send(WorkerError::Kind::internal), std::logic_error);
  EXPECT_FALSE(error_from_line(encode(CaseAnswer{})));
}

TEST(WorkerProtocol, WhatAKernelWroteIsNoAnswer) {
  for (const std::string_view line :
       {"", "hello", "[]", "{}", "{\"verdict\":0}", "{\"verdict\":99}"}) {
    EXPECT_ANY_THROW((void)answer_from_line(line)) << line;
  }
  EXPECT_ANY_THROW((void)error_from_line("{\"error\": and no more"));
}

}  // namespace

namespace {

TEST(WorkerChannel, ALetterArrivesAsItWasSealed) {
  const auto letter =
      opened(sealed({.question = ~0ULL, .process = 4711, .text = "{\"a\": [1 2]}"}));
  ASSERT_TRUE(letter.has_value());
  EXPECT_EQ(letter->question, ~0ULL);
  EXPECT_EQ(letter->process, 4711);
  EXPECT_EQ(letter->text, "{\"a\": [1 2]}");
}

TEST(WorkerChannel, AnythingElseIsNoLetter) {
  for (const std::string_view line :
       {"", " ", "1", "1 ", "1 2", "x1 2 {}", "1 2{}", "{\"verdict\":0}", "-1 2 {}", "1  2 {}",
        "99999999999999999999 2 {}"}) {
    EXPECT_FALSE(opened(line)) << line;
  }
}

}  // namespace

}  // namespace attest
