#include "verify/cases/rounding.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/run/registry.hpp"
#include "verify/cases/shrinking.hpp"

namespace attest {
namespace {

const KernelInfo& any_size() {
  return *find_kernel("o5_deferred", Executor::cpu);
}

KernelInfo kernel_that_takes(const std::function<bool(const Problem&)>& is_taken) {
  KernelInfo kernel = any_size();
  kernel.unsupported = [is_taken](const Problem& p, const Plan&) {
    return is_taken(p) ? std::nullopt : std::optional<std::string>("not this");
  };
  return kernel;
}

bool are_multiples(const Problem& p, std::int64_t unit) {
  return p.query_len > 0 && p.key_len > 0 && p.query_len % unit == 0 && p.key_len % unit == 0;
}

struct Picky {
  std::string name;
  std::function<bool(const Problem&)> takes;
};

void PrintTo(const Picky& picky, std::ostream* out) {
  *out << picky.name;
}
class PickyKernel : public testing::TestWithParam<Picky> {};

TEST_P(PickyKernel, GetsEveryCaseItIsAsked) {
  const KernelInfo kernel = kernel_that_takes(GetParam().takes);
  for (std::uint64_t index = 0; index < 100; ++index) {
    const auto c = draw_case(kernel, {}, 3, index);
    ASSERT_TRUE(c) << index;
    EXPECT_NO_THROW(validate(c->problem)) << to_string(*c);
    EXPECT_TRUE(can_run(any_size(), *c)) << to_string(*c);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , PickyKernel,
    testing::Values(Picky{"MultiplesOf16", [](const Problem& p) { return are_multiples(p, 16); }},
                    Picky{"MultiplesOf64", [](const Problem& p) { return are_multiples(p, 64); }},
                    Picky{"MultiplesOf128", [](const Problem& p) { return are_multiples(p, 128); }},
                    Picky{"MultiplesOf256", [](const Problem& p) { return are_multiples(p, 256); }},
                    Picky{"MultiplesOf512InEqualHeads",
                          [](const Problem& p) {
                            return are_multiples(p, 512) && p.query_heads == p.kv_heads;
                          }},
                    Picky{"MultiplesOf64WithHeadDim64InEqualHeads",
                          [](const Problem& p) {
                            return are_multiples(p, 64) && p.head_dim == 64 &&
                                   p.query_heads == p.kv_heads;
                          }},
                    Picky{"SquaresOf128WithHeadDim128AndOneHead",
                          [](const Problem& p) {
                            return are_multiples(p, 128) && p.query_len == p.key_len &&
                                   p.head_dim == 128 && p.batch * p.query_heads == 1;
                          }}),
    [](const auto& picky) { return picky.param.name; });

TEST(Rounding, AfterFewRefusalsSizesStayAsTheyWereDrawn) {
  for (std::uint64_t index = 0; index < 20; ++index) {
    const Case c = draw_attempt(any_size(), {}, 1, index, 0, 0);
    for (std::int64_t refused = 0; refused < refusals_as_drawn; ++refused) {
      EXPECT_EQ(rounded_case(any_size(), {}, c, refused), c);
    }
    EXPECT_TRUE(are_multiples(rounded_case(any_size(), {}, c, refusals_as_drawn).problem, 16));
  }
}

TEST(Rounding, LeavesHeadDimsThatAKernelListsAndWhatTheOptionsLimit) {
  KernelInfo listed = any_size();
  listed.head_dims = {24, 40};
  GeneratorOptions small;
  small.max_len = 12;
  small.max_head_dim = 20;
  for (std::uint64_t index = 0; index < 10; ++index) {
    for (std::int64_t attempt = refusals_as_drawn; attempt < draw_attempts; ++attempt) {
      const Problem& of_list = draw_attempt(listed, {}, 1, index, attempt, attempt).problem;
      if (of_list.head_dim != 64) {  // the real activations have that one
        EXPECT_TRUE(of_list.head_dim == 24 || of_list.head_dim == 40) << to_string(of_list);
      }
      const Case limited = draw_attempt(any_size(), small, 1, index, attempt, attempt);
      EXPECT_LE(limited.problem.query_len, 4 * *small.max_len);
      EXPECT_LE(limited.problem.key_len, 4 * *small.max_len);
      EXPECT_LE(limited.problem.head_dim, *small.max_head_dim);
    }
  }
}

TEST(Rounding, AnAttemptIsAPureFunctionOfItsNumber) {
  for (const std::int64_t attempt : {0, 1, 20, 49}) {
    EXPECT_EQ(draw_attempt(any_size(), {}, 7, 3, attempt, 2),
              draw_attempt(any_size(), {}, 7, 3, attempt, 2));
    EXPECT_NE(draw_attempt(any_size(), {}, 7, 3, attempt, 2),
              draw_attempt(any_size(), {}, 7, 3, attempt + 1, 2));
  }
}

TEST(Rounding, WhatMakesACaseRounderIsRefusalsAndNotAttempts) {
  int rough = 0;
  for (std::int64_t attempt = 0; attempt < draw_attempts; ++attempt) {
    const auto is_rough = [&](std::int64_t refused) {
      return !are_multiples(draw_attempt(any_size(), {}, 1, 0, attempt, refused).problem, 16);
    };
    rough += attempt > refusals_as_drawn && is_rough(0) ? 1 : 0;
    EXPECT_FALSE(is_rough(refusals_as_drawn + attempt)) << attempt;
  }
  EXPECT_GT(rough, 0);
}

}  // namespace
}  // namespace attest
