#include "verify/workers/worker_channel.hpp"

#include <gtest/gtest.h>

namespace attest {
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
