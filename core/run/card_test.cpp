#include "core/run/card.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace attest {
namespace {

double octaves(std::string_view a, std::string_view b) {
  return *octaves_between(card_in(a), card_in(b));
}

TEST(Card, OfAKnownNameHasItsFacts) {
  std::set<std::string_view> names;
  for (const Card& card : known_cards()) {
    EXPECT_EQ(card_in(card.name), card);
    EXPECT_GT(card.compute_capability, 0) << card.name;
    EXPECT_GT(card.sms, 0) << card.name;
    EXPECT_GT(card.terabytes_per_s, 0) << card.name;
    names.insert(card.name);
  }
  EXPECT_EQ(names.size(), known_cards().size());
}

TEST(Card, ThatNobodyKnowsIsWhatItsDescriptionSays) {
  EXPECT_EQ(card_in("NVIDIA H300, sm_90, 78 SMs, 95.0 GiB, 4.0 TB/s, PCI 0000:1b:00.0, driver CUDA "
                    "13.0, runtime CUDA 13.0"),
            (Card{"NVIDIA H300", 90, 78, 4.0}));
  EXPECT_EQ(card_in("NVIDIA H300, sm_100, 148 SMs"), (Card{"NVIDIA H300", 100, 148, 0}));
  EXPECT_EQ(card_in("NVIDIA H300"), (Card{"NVIDIA H300", 0, 0, 0}));
}

TEST(Card, HasTheSmsThatItsDescriptionTellsAndTheMemoryOfItsDataSheet) {
  EXPECT_EQ(card_in("NVIDIA H200, sm_90, 66 SMs, 69.0 GiB, 4.9 TB/s"),
            (Card{"NVIDIA H200", 90, 66, 4.8}));
}

TEST(Card, IsNotKnownByWordsThatAreNoFacts) {
  for (const std::string_view words :
       {"", ", ", "x, ", "x, sm_", "x, sm_90a", "x, sm_99999999999", "x,  SMs", "x, many SMs",
        "x, 1.5 SMs", "x, SMs", "x, TB/s", "x, fast TB/s", "x, 78 SMs of 132", ", , ,,", "x,"}) {
    const Card card = card_in(words);
    EXPECT_EQ(card.compute_capability, 0) << words;
    EXPECT_EQ(card.sms, 0) << words;
    EXPECT_EQ(card.terabytes_per_s, 0) << words;
  }
}

TEST(CardDistance, IsNothingBetweenArchitecturesAndToWhatIsNotKnown) {
  const Card h200 = card_in("NVIDIA H200");
  EXPECT_EQ(octaves_between(h200, card_in("NVIDIA A100-SXM4-80GB")), std::nullopt);
  EXPECT_EQ(octaves_between(h200, card_in("NVIDIA B200, sm_100, 148 SMs")), std::nullopt);
  EXPECT_EQ(octaves_between(h200, card_in("one")), std::nullopt);
  EXPECT_EQ(octaves_between(card_in("one"), card_in("another")), std::nullopt);
  EXPECT_EQ(octaves_between(card_in("one"), card_in("one")), 0);
}

TEST(CardDistance, CountsOctavesOfSmsAndOfEachSmsBandwidth) {
  EXPECT_EQ(octaves("NVIDIA H200", "NVIDIA H200"), 0);
  EXPECT_EQ(octaves("NVIDIA H200", "NVIDIA H200 NVL"), 0);
  EXPECT_EQ(octaves("one, sm_90, 64 SMs, 2 TB/s", "two, sm_90, 128 SMs, 4 TB/s"), 1);
  EXPECT_EQ(octaves("one, sm_90, 128 SMs, 2 TB/s", "two, sm_90, 128 SMs, 4 TB/s"), 1);
  EXPECT_EQ(octaves("one, sm_90, 64 SMs, 4 TB/s", "two, sm_90, 128 SMs, 4 TB/s"), 2);
  EXPECT_EQ(octaves("one, sm_90, 64 SMs", "two, sm_90, 128 SMs, 4 TB/s"), 1);
  EXPECT_EQ(octaves("one, sm_90", "two, sm_90, 128 SMs, 4 TB/s"), 0);
  for (const Card& a : known_cards()) {
    for (const Card& b : known_cards()) EXPECT_EQ(octaves_between(a, b), octaves_between(b, a));
  }
}

// An H20 has three fifths of the SMs and most of the memory of either: an SM of it reads as fast as
// none of theirs, and an H200's comes nearest.
TEST(CardDistance, PutsEveryHopperCardBesideTheOneThatItIsLike) {
  const auto nearer = [](std::string_view card) {
    constexpr std::string_view h100 = "NVIDIA H100 80GB HBM3", h200 = "NVIDIA H200";
    return octaves(card, h100) < octaves(card, h200) ? h100 : h200;
  };
  for (const std::string_view like_h100 :
       {"NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H800", "NVIDIA H800 PCIe",
        "NVIDIA GH200 120GB", "NVIDIA GH200 480GB"}) {
    EXPECT_EQ(nearer(like_h100), "NVIDIA H100 80GB HBM3") << like_h100;
  }
  for (const std::string_view like_h200 :
       {"NVIDIA H200 NVL", "NVIDIA H20", "NVIDIA H20-3e", "NVIDIA GH200 144G HBM3e"}) {
    EXPECT_EQ(nearer(like_h200), "NVIDIA H200") << like_h200;
  }
}

TEST(Card, IsALineOfWhatIsKnown) {
  EXPECT_EQ(to_string(card_in("NVIDIA H20")), "NVIDIA H20 (sm_90, 78 SMs, 4.0 TB/s)");
  EXPECT_EQ(to_string(card_in("NVIDIA H300, sm_90")), "NVIDIA H300 (sm_90)");
  EXPECT_EQ(to_string(card_in("NVIDIA H300")), "NVIDIA H300");
}

}  // namespace
}  // namespace attest
