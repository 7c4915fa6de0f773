#include "verify/campaign/killing_feature.hpp"

#include <gtest/gtest.h>

namespace attest {
namespace {

/// `cases` cases with these features, of which the first `kills` kill.
struct Cases {
  std::vector<std::string> features;
  int cases = 0, kills = 0;
};

FeatureTallies tallies_of(const std::vector<Cases>& groups) {
  FeatureTallies tallies;
  for (const Cases& group : groups) {
    for (int i = 0; i < group.cases; ++i) tallies.add(group.features, i < group.kills);
  }
  return tallies;
}

/// All names that the tests use.
const std::vector<std::string> every_name{
    "a",       "b",          "c",      "causal",   "d",         "always",         "grouped",
    "strided", "many heads", "narrow", "two keys", "one query", "negative scale", "wide"};

std::string name_of_killer(const std::vector<Cases>& groups, const Coverage& all = {},
                           const std::vector<std::string>& candidates = every_name) {
  const auto found = killing_feature(tallies_of(groups), candidates, all);
  return found ? found->name : "nothing";
}

TEST(KillingFeature, IsTheOneThatAllKillsHaveAndFewOtherCases) {
  EXPECT_EQ(name_of_killer({{{"always", "causal"}, 50, 0},
                            {{"always", "causal", "many heads"}, 3, 2},
                            {{"always", "many heads"}, 2, 2},
                            {{"always"}, 45, 0}}),
            "many heads");
}

TEST(KillingFeature, IsTheOneThatAllKillsNeedRatherThanOneThatAlwaysKills) {
  EXPECT_EQ(name_of_killer(
                {{{"causal", "two keys"}, 10, 10}, {{"causal"}, 40, 20}, {{"one query"}, 50, 0}}),
            "causal");
}

TEST(KillingFeature, IsOneThatTheShrunkCaseHas) {
  // The only case that killed was strided by chance.
  const std::vector<Cases> one_kill{{{"wide", "strided"}, 1, 1}, {{"wide"}, 5, 0}, {{"d"}, 94, 0}};
  EXPECT_EQ(name_of_killer(one_kill), "strided");
  EXPECT_EQ(name_of_killer(one_kill, {}, {"wide", "two keys"}), "wide");
}

TEST(KillingFeature, MayBeMissingInAFewKills) {
  // Another way to show the bug, seen once.
  EXPECT_EQ(
      name_of_killer(
          {{{"always", "grouped"}, 20, 18}, {{"always", "strided"}, 40, 1}, {{"always"}, 40, 0}}),
      "grouped");
}

TEST(KillingFeature, IsTheOneThatKillsMoreOftenWhereManyCasesDo) {
  // Half of the cases kill: all with it and a third of the others.
  EXPECT_EQ(
      name_of_killer({{{"always", "negative scale"}, 25, 25}, {{"always", "causal"}, 75, 25}}),
      "negative scale");
}

TEST(KillingFeature, IsNoneWhereKillsAreSpreadAsByChance) {
  EXPECT_EQ(name_of_killer({{{"always", "causal"}, 30, 17}, {{"always"}, 70, 36}}), "nothing");
  EXPECT_EQ(name_of_killer({{{"always", "causal"}, 30, 30}, {{"always"}, 70, 70}}), "nothing");
}

TEST(KillingFeature, OfEqualsIsTheRarestInTheCasesOfAllBugsThenTheFirstByName) {
  const std::vector<Cases> one_kill{{{"c", "b", "a"}, 1, 1}, {{"d"}, 99, 0}};
  EXPECT_EQ(name_of_killer(one_kill, {{"a", 7}, {"b", 5}, {"c", 6}}), "b");
  EXPECT_EQ(name_of_killer(one_kill, {{"a", 5}, {"b", 5}, {"c", 6}}), "a");
}

TEST(KillingFeature, ComesWithItsCasesAndKillsAndIsNoneForASurvivor) {
  const auto found =
      killing_feature(tallies_of({{{"wide"}, 40, 30}, {{"narrow"}, 60, 0}}), every_name, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->tally, (KillTally{.cases = 40, .kills = 30}));
  EXPECT_EQ(name_of_killer({{{"wide"}, 4, 0}}), "nothing");
  EXPECT_EQ(name_of_killer({}), "nothing");
}

}  // namespace
}  // namespace attest
