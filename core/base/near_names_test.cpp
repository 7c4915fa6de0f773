#include "core/base/near_names.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace attest {
namespace {

using Names = std::vector<std::string>;

TEST(NearNames, one_typing_error_of_each_kind_is_found_and_the_nearest_comes_first) {
  const Names names{"stalls", "shared", "tensor", "occupancy"};
  EXPECT_EQ(near_names("shard", names), Names{"shared"});
  EXPECT_EQ(near_names("sharred", names), Names{"shared"});
  EXPECT_EQ(near_names("tenser", names), Names{"tensor"});
  EXPECT_EQ(near_names("abcd", Names{"abxd", "abce", "abcd"}), (Names{"abcd", "abxd", "abce"}));
}

TEST(NearNames, a_part_or_a_misspelt_beginning_stands_for_the_whole) {
  EXPECT_EQ(near_names("k5", Names{"k4_register_tile", "k5_padded_tiles"}),
            Names{"k5_padded_tiles"});
  EXPECT_EQ(near_names("casual", Names{"none", "causal_top_left"}), Names{"causal_top_left"});
}

TEST(NearNames, nothing_is_offered_that_differs_in_more_than_a_third) {
  EXPECT_EQ(near_names("clocks", Names{"stalls", "dram"}), Names{});
  EXPECT_EQ(near_names("", Names{"dram"}), Names{});
  EXPECT_EQ(near_names("123456789", Names{"12345wxyz", "123456xyz"}), Names{"123456xyz"});
}

TEST(NearNames, at_most_three_are_offered_and_where_none_is_near_all_are_allowed) {
  EXPECT_EQ(near_or_all("aaa", Names{"aab", "aac", "aad", "aae"}), "near: aab, aac, aad");
  EXPECT_EQ(near_or_all("clocks", Names{"dram", "l2"}), "allowed: dram, l2");
}

}  // namespace
}  // namespace attest
