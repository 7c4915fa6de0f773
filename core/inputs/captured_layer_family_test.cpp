#include "core/inputs/captured_layer_family.hpp"

#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/inputs/captured_inputs_test.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

TEST(CapturedLayerFamily, a_layer_with_fewer_queries_than_keys_is_taken_whole) {
  const auto layers = layers_of(
      {counted("q", {1, 1, 2, 2}), counted("k", {1, 1, 5, 2}), counted("v", {1, 1, 5, 2})});
  const InputFamily family = captured_layer_family(layers.front(), "one");
  Problem problem{.query_len = 2, .key_len = 5, .head_dim = 2};
  EXPECT_FALSE(family.unsupported(problem).has_value());
  EXPECT_EQ(family.make(problem, {})[forward::k].at(0, 0, 4, 1), 9);
  problem.query_len = 1;
  EXPECT_TRUE(family.unsupported(problem).has_value());
  problem.key_len = 4;
  EXPECT_TRUE(family.unsupported(problem).has_value());
}

TEST(CapturedLayerFamily, it_holds_the_first_rows_of_every_head_whatever_the_seed) {
  const auto layers = layers_of({counted("q", {1, 4, 6, 2}), counted("k", {1, 2, 6, 2}, 100),
                                 counted("v", {1, 2, 6, 2}, 200)});
  const InputFamily family = captured_layer_family(layers.front(), "one");
  for (const std::int64_t rows : {1, 5, 6}) {
    const Problem problem{
        .query_heads = 4, .kv_heads = 2, .query_len = rows, .key_len = rows, .head_dim = 2};
    const Inputs inputs = family.make(problem, {.family = "one", .seed = 7, .magnitude = 3});
    for (std::int64_t n = 0; n < rows; ++n) {
      EXPECT_EQ(inputs[forward::q].at(0, 3, n, 1), static_cast<float>((3 * 6 + n) * 2 + 1));
      EXPECT_EQ(inputs[forward::k].at(0, 1, n, 0), static_cast<float>(100 + (6 + n) * 2));
      EXPECT_EQ(inputs[forward::v].at(0, 1, n, 0), static_cast<float>(200 + (6 + n) * 2));
    }
    Problem other = problem;
    other.query_heads = 2;  // another head's rows would stand there
    EXPECT_TRUE(family.unsupported(other).has_value());
    EXPECT_THROW((void)family.make(other, {}), InvalidInput);
  }
  EXPECT_TRUE(family.unsupported(
      {.query_heads = 4, .kv_heads = 2, .query_len = 7, .key_len = 7, .head_dim = 2}));
}

}  // namespace
}  // namespace attest
