#include "core/attention/plan.hpp"

#include <gtest/gtest.h>

#include "core/base/error.hpp"

namespace attest {
namespace {

std::string message_of(std::string_view text) {
  try {
    (void)plan_from_string(text);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Plan, EveryFieldReadsBackFromItsText) {
  Plan all;
  for (const PlanField& field : plan_fields()) {
    Plan one;
    one.*field.member = field.is_choice() ? static_cast<std::int64_t>(field.values.size()) : 48;
    all.*field.member = one.*field.member;
    EXPECT_EQ(plan_from_string(to_string(one)), one) << to_string(one);
  }
  EXPECT_EQ(plan_from_string(to_string(all)), all) << to_string(all);
  EXPECT_EQ(plan_from_string(to_string(Plan{})), Plan{});
  EXPECT_EQ(plan_from_string(""), Plan{});
}

TEST(Plan, TextNamesSizesShortAndChoicesInFull) {
  const Plan plan{.query_tile = 32, .key_tile = 16, .grid_order = GridOrder::grouped, .group = 4};
  EXPECT_EQ(to_string(plan), "qt32 kt16 grid_order=grouped g4");
  EXPECT_EQ(plan_from_string("group=4,grid_order=grouped, key_tile=16 qt32"), plan);
}

TEST(Plan, AFaultyTextGetsOneLineThatNamesThePartAndWhatIsAllowed) {
  EXPECT_EQ(message_of("qt32,grid_order=worst"),
            "plan field 'grid_order' is 'worst'; allowed: q_fastest, q_slowest, grouped, "
            "launch_per_head, two_dimensional, longest_first, paired");
  EXPECT_EQ(message_of("query_tile=-1"),
            "plan field 'query_tile' is '-1'; allowed: a whole number from 1 to 1048576");
  EXPECT_EQ(message_of("qt99999999999999999999"),
            "plan field 'query_tile' is '99999999999999999999'; allowed: a whole number from 1 to "
            "1048576");
  for (const char* text : {"qt", "32", "qt32x", "=", "tile=3", "passes2", "qt 32", "grid_order="}) {
    EXPECT_NE(message_of(text), "accepted") << text;
  }
}

}  // namespace
}  // namespace attest
