#include "core/mask.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/problem.hpp"

namespace attest {
namespace {

/// One string a query, `x` where it sees the key.
std::vector<std::string> drawn(Mask mask, std::int64_t query_len, std::int64_t key_len) {
  std::vector<std::string> table;
  for (std::int64_t query = 0; query < query_len; ++query) {
    table.emplace_back();
    for (std::int64_t key = 0; key < key_len; ++key) {
      table.back() += is_visible(mask, query_len, key_len, query, key) ? 'x' : '.';
    }
  }
  return table;
}

using Table = std::vector<std::string>;

TEST(Mask, WithoutMaskEveryQuerySeesEveryKey) {
  EXPECT_EQ(drawn(Mask::none, 2, 3), (Table{"xxx", "xxx"}));
}

TEST(Mask, BothCausalAlignmentsAgreeOnSquares) {
  const Table table{"x...", "xx..", "xxx.", "xxxx"};
  EXPECT_EQ(drawn(Mask::causal_top_left, 4, 4), table);
  EXPECT_EQ(drawn(Mask::causal_bottom_right, 4, 4), table);
}

TEST(Mask, TopLeftAlignsTheFirstQueryWithTheFirstKey) {
  EXPECT_EQ(drawn(Mask::causal_top_left, 2, 4), (Table{"x...", "xx.."}));
  EXPECT_EQ(drawn(Mask::causal_top_left, 4, 2), (Table{"x.", "xx", "xx", "xx"}));
}

TEST(Mask, BottomRightAlignsTheLastQueryWithTheLastKeyAndLeavesEarlyRowsEmpty) {
  EXPECT_EQ(drawn(Mask::causal_bottom_right, 2, 4), (Table{"xxx.", "xxxx"}));
  EXPECT_EQ(drawn(Mask::causal_bottom_right, 4, 2), (Table{"..", "..", "x.", "xx"}));
}

// The picture of the course's causal lesson: 36 of 64 entries.
TEST(Mask, EightTokensSeeThirtySixPairs) {
  const Problem problem{.query_len = 8, .key_len = 8, .head_dim = 1, .mask = Mask::causal_top_left};
  EXPECT_EQ(forward_flops(problem), 4.0 * 36);
}

TEST(Mask, EveryNameReadsBack) {
  for (const Mask mask : all_masks()) EXPECT_EQ(mask_from_name(name_of(mask)), mask);
}

}  // namespace
}  // namespace attest
