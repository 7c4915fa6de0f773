#include "core/attention/mask.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/attention/problem.hpp"

namespace attest {
namespace {

/// One string a query, `x` where it sees the key.
std::vector<std::string> drawn(const Problem& problem, std::int64_t entry = 0) {
  std::vector<std::string> table;
  for (std::int64_t query = 0; query < problem.query_len; ++query) {
    table.emplace_back();
    for (std::int64_t key = 0; key < problem.key_len; ++key) {
      table.back() += problem.sees(entry, query, key) ? 'x' : '.';
    }
  }
  return table;
}
std::vector<std::string> drawn(Mask mask, std::int64_t query_len, std::int64_t key_len,
                               Window window = {}) {
  return drawn({.query_len = query_len, .key_len = key_len, .mask = mask, .window = window});
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

TEST(Mask, AWindowSeesItsKeysOnBothSidesOfTheDiagonalInclusively) {
  EXPECT_EQ(drawn(Mask::window_top_left, 4, 5, {1, 0}),
            (Table{"x....", "xx...", ".xx..", "..xx."}));
  EXPECT_EQ(drawn(Mask::window_top_left, 3, 4, {0, 1}), (Table{"xx..", ".xx.", "..xx"}));
  EXPECT_EQ(drawn(Mask::window_top_left, 2, 3, {0, 0}), (Table{"x..", ".x."}));
}

TEST(Mask, ABottomRightWindowIsAlignedWithTheLastKey) {
  EXPECT_EQ(drawn(Mask::window_bottom_right, 2, 5, {1, 0}), (Table{"..xx.", "...xx"}));
  EXPECT_EQ(drawn(Mask::window_bottom_right, 5, 2, {0, 1}), (Table{"..", "..", "x.", "xx", ".x"}));
}

TEST(Mask, AWindowLeavesRowsBeyondItsReachEmpty) {
  EXPECT_EQ(drawn(Mask::window_top_left, 5, 2, {1, 0}), (Table{"x.", "xx", ".x", "..", ".."}));
}

TEST(Mask, AnOpenSideOfAWindowHasNoEnd) {
  EXPECT_EQ(drawn(Mask::window_top_left, 3, 3, {-1, 0}), drawn(Mask::causal_top_left, 3, 3));
  EXPECT_EQ(drawn(Mask::window_bottom_right, 3, 5, {-1, 0}),
            drawn(Mask::causal_bottom_right, 3, 5));
  EXPECT_EQ(drawn(Mask::window_top_left, 3, 3, {0, -1}), (Table{"xxx", ".xx", "..x"}));
  EXPECT_EQ(drawn(Mask::window_top_left, 3, 3), drawn(Mask::none, 3, 3));
}

TEST(Mask, NeitherEndOfARangeFalls) {
  for (const Mask mask : all_masks()) {
    for (const Window window : {Window{}, Window{0, 0}, Window{3, 1}, Window{-1, 2}}) {
      for (std::int64_t query = 1; query < 20; ++query) {
        const KeyRange before = visible_range(mask, window, 20, 9, query - 1);
        const KeyRange now = visible_range(mask, window, 20, 9, query);
        EXPECT_LE(before.begin, now.begin);
        EXPECT_LE(before.end, now.end);
        EXPECT_LE(now.begin, now.end);
        EXPECT_LE(now.end, 9);
      }
    }
  }
}

TEST(Mask, QueriesPastTheLengthOfTheirEntrySeeNothing) {
  const Problem problem{.batch = 40, .query_len = 6, .key_len = 5, .length_seed = 3};
  bool is_zero_seen = false, is_full_seen = false;
  for (std::int64_t entry = 0; entry < problem.batch; ++entry) {
    const std::int64_t queries = problem.query_len_of(entry), keys = problem.key_len_of(entry);
    is_zero_seen |= queries == 0;
    is_full_seen |= queries == 6 && keys == 5;
    Table expected(6, std::string(5, '.'));
    for (std::int64_t query = 0; query < queries; ++query) {
      for (std::int64_t key = 0; key < keys; ++key) {
        expected[static_cast<std::size_t>(query)][static_cast<std::size_t>(key)] = 'x';
      }
    }
    EXPECT_EQ(drawn(problem, entry), expected);
  }
  EXPECT_TRUE(is_zero_seen && is_full_seen);
}

TEST(Mask, ACausalMaskIsAlignedWithTheLengthsOfTheEntry) {
  const Problem problem{.batch = 40,
                        .query_len = 6,
                        .key_len = 9,
                        .mask = Mask::causal_bottom_right,
                        .length_seed = 2};
  for (std::int64_t entry = 0; entry < problem.batch; ++entry) {
    const std::int64_t queries = problem.query_len_of(entry);
    if (queries == 0) continue;
    EXPECT_EQ(problem.visible_range(entry, queries - 1).end, problem.key_len_of(entry));
  }
}

TEST(Mask, PaddingHidesAKeyFromAllQueriesOfAnEntry) {
  const Problem problem{.batch = 60, .query_len = 2, .key_len = 7, .padding_seed = 5};
  bool is_left = false, is_right = false, is_hole = false, is_all = false, is_none = false;
  for (std::int64_t entry = 0; entry < problem.batch; ++entry) {
    const Table table = drawn(problem, entry);
    EXPECT_EQ(table[0], table[1]);
    is_all |= table[0] == ".......";
    is_none |= table[0] == "xxxxxxx";
    is_left |= table[0] == "..xxxxx";
    is_right |= table[0] == "xxxx...";
    is_hole |= table[0].find("x.x") != std::string::npos;
    EXPECT_EQ(static_cast<std::int64_t>(visible_keys_of(problem, entry, 0).size()),
              visible_key_count(problem, entry, 0));
  }
  EXPECT_TRUE(is_left && is_right && is_hole && is_all && is_none);
}

TEST(Mask, FlopsCountTheVisiblePairsOfEveryEntry) {
  const Problem problem{.batch = 9,
                        .query_heads = 2,
                        .kv_heads = 1,
                        .query_len = 6,
                        .key_len = 9,
                        .head_dim = 3,
                        .value_dim = 5,
                        .mask = Mask::window_top_left,
                        .window = {2, 1},
                        .length_seed = 4,
                        .padding_seed = 6};
  double pairs = 0;
  for (std::int64_t entry = 0; entry < problem.batch; ++entry) {
    for (const std::string& row : drawn(problem, entry)) {
      for (const char c : row) pairs += c == 'x' ? 1 : 0;
    }
  }
  EXPECT_EQ(forward_flops(problem), 2.0 * (3 + 5) * 2 * pairs);
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
