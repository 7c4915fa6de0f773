#include "verify/cases/refusals.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/base/json.hpp"

namespace attest {
namespace {

Refusals refusals_of(const std::vector<std::string>& sentences) {
  Refusals refusals;
  for (const std::string& sentence : sentences) refusals.add(sentence);
  return refusals;
}

TEST(Refusals, SentencesThatDifferInNumbersOnlyCountAsOne) {
  const Refusals refusals =
      refusals_of({"37 keys are no multiple of 64", "no bf16", "5 keys are no multiple of 64",
                   "no bf16 today", "130 keys are no multiple of 64"});
  EXPECT_EQ(refusals.count(), 5);
  EXPECT_EQ(refusals.most_frequent().count, 3);
  EXPECT_EQ(refusals.most_frequent().text, "130 keys are no multiple of 64") << "one of the three";
}

TEST(Refusals, AreTheSameInWhateverOrderTheyCome) {
  const Refusals a = refusals_of({"head_dim 7", "no mask", "head_dim 65", "no mask"});
  EXPECT_EQ(a, refusals_of({"no mask", "head_dim 65", "no mask", "head_dim 7"}));
  Refusals joined = refusals_of({"head_dim 65", "no mask"});
  joined.add(refusals_of({"no mask", "head_dim 7"}));
  EXPECT_EQ(a, joined);
}

TEST(Refusals, AreKeptOnDisk) {
  const Refusals refusals = refusals_of({"head_dim 7", "no mask", "head_dim 65", ""});
  EXPECT_EQ(Refusals::from_json(parse_json(refusals.to_json().dump())), refusals);
  EXPECT_EQ(Refusals::from_json(Refusals{}.to_json()), Refusals{});
  EXPECT_EQ(Refusals{}.most_frequent().count, 0);
}

TEST(Refusals, AKernelThatNeverSaysTheSameTwiceIsCountedAndDoesNotFillTheDisk) {
  Refusals refusals;
  for (char a = 'a'; a <= 'z'; ++a) {
    for (char b = 'a'; b <= 'z'; ++b) refusals.add(fmt::format("{}{}", a, b));
  }
  EXPECT_EQ(refusals.count(), 26 * 26);
  EXPECT_LT(refusals.to_json().at("sentences").size(), 26U * 26U);
}

}  // namespace
}  // namespace attest
