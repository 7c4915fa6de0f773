// The laws of merges, each against a saboteur.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/operations/combine_arguments.hpp"
#include "verify/laws/spoilt_kernel_test.hpp"

namespace attest {
namespace {

using Sabotage = std::function<void(const CombineArguments&)>;

Case merge_case() {
  return {.kernel = "combine_parts",
          .problem = {.operation = &combine_operation,
                      .batch = 2,
                      .query_heads = 3,
                      .kv_heads = 3,
                      .query_len = 5,
                      .head_dim = 7,
                      .parts = 3},
          .inputs = {.family = "partial_some_empty", .seed = 11}};
}

/// Spoils only what is launched beside the case itself.
void expect_caught(const std::string& law, const Sabotage& sabotage) {
  expect_law_catches<CombineArguments>(law, merge_case(), sabotage);
}

float* o_row(const CombineArguments& a, std::int64_t b, std::int64_t h, std::int64_t n) {
  return static_cast<float*>(a.o) + a.o_strides.offset(b, h, n);
}

void for_each_row(const Problem& p,
                  const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& visit) {
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len; ++n) visit(b, h, n);
    }
  }
}

TEST(CombineLaws, CopiesOfAPartThatMergeToItsNeighbourAreCaught) {
  expect_caught("copies_of_a_part_give_it_back", [](const CombineArguments& a) {
    if (a.problem.parts == 3) return;
    for_each_row(a.problem, [&](auto b, auto h, auto n) {
      float& x = *o_row(a, b, h, n);
      x = std::nextafter(x, std::numeric_limits<float>::infinity());
    });
  });
}

TEST(CombineLaws, AnLseThatIsAnUlpOffTheOnlyPartIsCaught) {
  expect_caught("one_part_is_a_copy", [](const CombineArguments& a) {
    if (a.problem.parts != 1) return;
    for (std::int64_t row = 0; row < a.problem.rows(); ++row) {
      if (std::isfinite(a.lse[row])) a.lse[row] = std::nextafter(a.lse[row], 1e30F);
    }
  });
}

TEST(CombineLaws, AnEmptyPartThatIsCountedIsCaught) {
  expect_caught("empty_part_changes_nothing", [](const CombineArguments& a) {
    if (a.problem.parts != 4) return;
    for_each_row(a.problem, [&](auto b, auto h, auto n) { *o_row(a, b, h, n) *= 0.99F; });
  });
}

TEST(CombineLaws, AMergeThatForgetsItsLastPartIsCaughtByReversal) {
  expect_caught("permuted_parts_agree", [](const CombineArguments& a) {
    // The part that comes last weighs more.
    const Problem& p = a.problem;
    for_each_row(p, [&](auto b, auto h, auto n) {
      const std::int64_t row = (b * p.query_heads + h) * p.query_len + n;
      const float last = a.partial_lse[(row - n) * p.parts + (p.parts - 1) * p.query_len + n];
      if (std::isfinite(last)) a.lse[row] += 0.01F * last;
    });
  });
}

TEST(CombineLaws, ANanThatIsReplacedByZeroIsCaught) {
  expect_caught("nan_part_stays_in_its_row", [](const CombineArguments& a) {
    for_each_row(a.problem, [&](auto b, auto h, auto n) {
      for (std::int64_t d = 0; d < a.problem.head_dim; ++d) {
        float& x = o_row(a, b, h, n)[d];
        if (std::isnan(x)) x = 0;
      }
    });
  });
}

TEST(CombineLaws, ANanThatReachesTheNextRowIsCaught) {
  expect_caught("nan_part_stays_in_its_row", [](const CombineArguments& a) {
    const Problem& p = a.problem;
    bool is_hit = false;
    for_each_row(p, [&](auto b, auto h, auto n) {
      for (std::int64_t d = 0; d < p.head_dim; ++d) {
        is_hit = is_hit || std::isnan(o_row(a, b, h, n)[d]);
      }
    });
    if (is_hit) {
      for_each_row(p, [&](auto b, auto h, auto n) {
        *o_row(a, b, h, n) = std::numeric_limits<float>::quiet_NaN();
      });
    }
  });
}

}  // namespace
}  // namespace attest
