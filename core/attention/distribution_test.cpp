#include "core/attention/distribution.hpp"

#include <gtest/gtest.h>

namespace attest {
namespace {

TEST(Distribution, EveryTokenIsAtOneRankWhateverTheLength) {
  for (const std::int64_t distribution :
       {Distribution::contiguous, Distribution::zigzag, Distribution::stripe}) {
    for (const std::int64_t ranks : {1, 2, 3, 8}) {
      for (const std::int64_t length : {0, 1, 2, 5, 15, 16, 17, 31, 48}) {
        std::vector<int> seen(static_cast<std::size_t>(length));
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          const auto tokens = tokens_of_rank(distribution, length, ranks, rank);
          EXPECT_LE(static_cast<std::int64_t>(tokens.size()), most_tokens(length, ranks));
          for (const std::int64_t token : tokens) ++seen.at(static_cast<std::size_t>(token));
        }
        EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << distribution << ' ' << ranks;
      }
    }
  }
}

TEST(Distribution, ZigzagPairsAPieceOfTheFrontWithOneOfTheBack) {
  EXPECT_EQ(tokens_of_rank(Distribution::zigzag, 8, 2, 0), (std::vector<std::int64_t>{0, 1, 6, 7}));
  EXPECT_EQ(tokens_of_rank(Distribution::zigzag, 8, 2, 1), (std::vector<std::int64_t>{2, 3, 4, 5}));
}

TEST(Distribution, UnderACausalMaskZigzagGivesAllRanksAsManyPairs) {
  constexpr std::int64_t ranks = 4, length = 2 * ranks * 5;
  std::vector<std::int64_t> pairs;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::int64_t sum = 0;
    for (const std::int64_t token : tokens_of_rank(Distribution::zigzag, length, ranks, rank)) {
      sum += token + 1;
    }
    pairs.push_back(sum);
  }
  EXPECT_EQ(pairs, std::vector<std::int64_t>(ranks, length * (length + 1) / 2 / ranks));
}

}  // namespace
}  // namespace attest
