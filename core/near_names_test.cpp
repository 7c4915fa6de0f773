#include "core/near_names.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace attest {
namespace {

using Names = std::vector<std::string>;

TEST(NearNames, one_edit_of_each_kind_is_found_and_the_nearest_comes_first) {
  const Names names{"stalls", "shared", "tensor", "occupancy"};
  EXPECT_EQ(near_names("share", names), Names{"shared"});
  EXPECT_EQ(near_names("sharred", names), Names{"shared"});
  EXPECT_EQ(near_names("tenser", names), Names{"tensor"});
  EXPECT_EQ(near_names("abcd", Names{"abxx", "abcx", "abcd"}), (Names{"abcd", "abcx"}));
}

TEST(NearNames, nothing_is_offered_that_differs_in_more_than_a_third) {
  EXPECT_EQ(near_names("clocks", Names{"stalls", "dram"}), Names{});
  EXPECT_EQ(near_names("", Names{"dram"}), Names{});
  EXPECT_EQ(near_names("123456789", Names{"123456xyz", "12345wxyz"}), Names{"123456xyz"});
}

TEST(NearNames, at_most_so_many_are_offered) {
  EXPECT_EQ(near_names("aaa", Names{"aab", "aac", "aad", "aae"}, 2), (Names{"aab", "aac"}));
}

TEST(NearNames, a_message_ends_in_a_question_only_where_there_is_something_to_offer) {
  EXPECT_EQ(did_you_mean("drum", Names{"dram"}), "; did you mean 'dram'?");
  EXPECT_EQ(did_you_mean("aaa", Names{"aab", "aac", "aad"}),
            "; did you mean 'aab', 'aac' or 'aad'?");
  EXPECT_EQ(did_you_mean("clocks", Names{"dram"}), "");
}

}  // namespace
}  // namespace attest
