#include "verify/campaign/counterexample.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "core/base/error.hpp"
#include "core/base/temporary_folder.hpp"

namespace attest {
namespace {

class CounterexampleFile : public testing::Test {
 protected:
  std::string message_of(const std::string& text) {
    std::ofstream(folder_ / "x.json") << text;
    try {
      (void)read_counterexample(folder_ / "x.json");
    } catch (const InvalidInput& error) {
      const std::string message = error.what();
      return message.substr(message.find("x.json"));
    }
    return "accepted";
  }

  TemporaryFolder folder_;
  Failure failure_{
      .law = "within_bound",
      .the_case = {.kernel = "mutant/a b", .problem = {.key_len = 3}, .inputs = {.seed = 5}},
      .check = Check::failed_at("O", {.got = std::numeric_limits<double>::quiet_NaN(), .want = 1},
                                "outside")};
};

TEST_F(CounterexampleFile, ReadsBackAsItWasWrittenEvenWithNaNEvidence) {
  const auto path = write_counterexample(folder_, failure_, Executor::simt, "my.safetensors");
  const Counterexample read = read_counterexample(path);
  EXPECT_EQ(read.law, "within_bound");
  EXPECT_EQ(read.executor, Executor::simt);
  EXPECT_EQ(read.inputs_file, "my.safetensors");
  EXPECT_EQ(read.the_case, failure_.the_case);
}

TEST_F(CounterexampleFile, LeavesNoUnfinishedFileBehind) {
  (void)write_counterexample(folder_, failure_, Executor::cpu, "");
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_EQ(entry.path().extension(), ".json");
  }
}

TEST_F(CounterexampleFile, AFaultyFileGetsOneLine) {
  EXPECT_EQ(message_of("[1"), "x.json: not JSON at byte 3; a counterexample is expected");
  EXPECT_EQ(message_of("[]"), "x.json: is []; allowed: an object");
  EXPECT_EQ(message_of(R"({"case": {}, "low": 1})"),
            "x.json: key 'law' is missing; keys that are there: case, low");
  EXPECT_EQ(message_of(R"({"case": {}, "law": 3})"), "x.json: 'law' is 3; allowed: a string");
  EXPECT_EQ(message_of(R"({"case": {}, "law": "a", "executor": "tpu"})"),
            "x.json: 'executor' is \"tpu\"; allowed: cpu, simt, gpu");
  EXPECT_EQ(message_of(R"({"law": "a", "case": {}, "law": "b"})"),
            "x.json: key 'law' is given twice in one object");
  EXPECT_EQ(message_of(R"({"case": {"plan": {"key_tile": 1, "key_tile": 2}}})"),
            "x.json: key 'key_tile' is given twice in one object");
  EXPECT_EQ(message_of(R"({"case": {}, "evidence": {"got": 1e999}})"),
            "x.json: it holds a number that is too large for a double");
  EXPECT_EQ(message_of(R"({"case": )" + std::string(100, '[')),
            "x.json: brackets are nested deeper than 64 at byte 73");
  EXPECT_EQ(message_of(R"({"case": {}, "a\nb": 1})").find('\n'), std::string::npos);
  EXPECT_THROW((void)read_counterexample(folder_ / "absent.json"), InvalidInput);
}

}  // namespace
}  // namespace attest
