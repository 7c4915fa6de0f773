#include "core/run/rank_group.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

constexpr std::int64_t ranks = 3;

Problem problem() {
  return {.batch = 2, .query_heads = 2, .kv_heads = 1, .query_len = 7, .key_len = 4, .head_dim = 5};
}

Plan plan() {
  return {.ranks = ranks, .distribution = Distribution::zigzag};
}

/// Writes all that a rank has to write.
void write_zeros(const RankLaunch& r) {
  const std::int64_t rows = r.problem.query_heads * r.queries.count();
  std::fill_n(static_cast<float*>(r.o), rows * r.problem.output_dim(), 0.0F);
  std::fill_n(r.lse, rows, 0.0F);
}

/// Message of the error of a group whose ranks run `program` and then write; "none": no error.
std::string error_of(const RankProgram& program) {
  try {
    (void)run_rank_group(problem(), plan(), make_inputs(problem(), {}), [&](const RankLaunch& r) {
      program(r);
      write_zeros(r);
    });
  } catch (const KernelError& error) {
    return error.what();
  }
  return "none";
}

const std::array<std::byte, 8> message{};

TEST(RankGroup, ARowComesBackFromTheRankThatHasIt) {
  const Inputs inputs = make_inputs(problem(), {});
  const Outputs outputs = run_rank_group(problem(), plan(), inputs, [](const RankLaunch& r) {
    const std::int64_t values = r.problem.query_heads * r.queries.count() * r.problem.head_dim;
    std::copy_n(static_cast<const float*>(r.q), values, static_cast<float*>(r.o));
    for (std::int64_t h = 0; h < r.problem.query_heads; ++h) {
      for (std::int64_t i = 0; i < r.queries.count(); ++i) {
        r.lse[h * r.queries.count() + i] =
            static_cast<float>(r.queries.tokens[static_cast<std::size_t>(i)]);
      }
    }
  });
  EXPECT_TRUE(std::ranges::equal(outputs[forward::o].values(), inputs[forward::q].values()));
  for (std::int64_t n = 0; n < problem().query_len; ++n) {
    EXPECT_EQ(outputs[forward::lse].at(1, 1, n, 0), static_cast<float>(n));
  }
}

TEST(RankGroup, EachRankHasKeysOfItsOwnAndSomeHaveNone) {
  std::vector<std::int64_t> counts(ranks);
  EXPECT_EQ(error_of([&](const RankLaunch& r) {
              counts[static_cast<std::size_t>(r.rank)] = r.keys.count();
            }),
            "none");
  EXPECT_EQ(counts, (std::vector<std::int64_t>{2, 2, 4}));
}

TEST(RankGroup, MessagesComeInTheOrderInWhichTheyWereSent) {
  EXPECT_EQ(error_of([](const RankLaunch& r) {
              for (int i = 0; i < 100; ++i) {
                std::array<std::byte, 1> byte{static_cast<std::byte>(i)};
                r.send(r.neighbour(1), byte);
                r.receive(r.neighbour(-1), byte);
                if (byte[0] != static_cast<std::byte>(i)) throw KernelError("another message");
              }
            }),
            "none");
}

TEST(RankGroup, ARankThatWaitsForEverIsNamed) {
  EXPECT_EQ(error_of([](const RankLaunch& r) {
              std::array<std::byte, 8> bytes{};
              if (r.rank == 1) r.receive(2, bytes);
            }),
            "rank 1 waits for a message of rank 2 that never comes");
}

TEST(RankGroup, RanksThatWaitForEachOtherEnd) {
  EXPECT_EQ(error_of([](const RankLaunch& r) {
              std::array<std::byte, 8> bytes{};
              r.receive(r.neighbour(-1), bytes);
            }),
            "rank 0 waits for a message of rank 2 that never comes");
}

TEST(RankGroup, AMessageOfAnotherSizeIsRefused) {
  EXPECT_EQ(error_of([](const RankLaunch& r) {
              std::array<std::byte, 4> bytes{};
              if (r.rank == 0) r.send(1, message);
              if (r.rank == 1) r.receive(0, bytes);
            }),
            "rank 0 sent 8 bytes to rank 1, which receives 4");
}

TEST(RankGroup, AMessageThatNobodyReceivesIsAnError) {
  EXPECT_EQ(error_of([](const RankLaunch& r) {
              if (r.rank == 0) r.send(1, message);
            }),
            "rank 1 did not receive 1 of rank 0's messages");
}

TEST(RankGroup, WhatFailedComesBeforeWhatWaitedForIt) {
  EXPECT_EQ(error_of([](const RankLaunch& r) {
              std::array<std::byte, 8> bytes{};
              if (r.rank == 2) throw KernelError("rank 2 has no memory");
              r.receive(2, bytes);
            }),
            "rank 2 has no memory");
}

TEST(RankGroup, WritingPastARanksRowsIsFoundAndTheRankNamed) {
  const std::string error = error_of([](const RankLaunch& r) {
    if (r.rank == 1) r.lse[r.problem.query_heads * r.queries.count()] = 1;
  });
  EXPECT_TRUE(error.starts_with("rank 1's LSE")) << error;
}

TEST(RankGroup, ARankThatWritesNothingIsNamed) {
  try {
    (void)run_rank_group(problem(), plan(), make_inputs(problem(), {}), [](const RankLaunch& r) {
      if (r.rank != 2) write_zeros(r);
    });
    FAIL() << "accepted";
  } catch (const KernelError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 2's O"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace attest
