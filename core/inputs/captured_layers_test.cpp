#include "core/inputs/captured_layers.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.hpp"
#include "core/inputs/captured_inputs_test.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

std::string refusal(const std::vector<NamedValues>& tensors, const std::string& layout = "") {
  try {
    (void)layers_of(tensors, layout);
  } catch (const InvalidInput& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "";
}

TEST(CapturedLayers, a_tensor_of_three_dimensions_is_tokens_heads_dims_unless_the_file_says_hnd) {
  const auto tensors = [](const Extents& q, const Extents& kv) {
    return std::vector{counted("q", q), counted("k", kv), counted("v", kv)};
  };
  const auto nhd = layers_of(tensors({5, 2, 3}, {5, 1, 3}));
  EXPECT_EQ(nhd[0].q.shape(), (Shape{1, 2, 5, 3}));
  EXPECT_EQ(nhd[0].q.at(0, 1, 4, 2), 4 * 6 + 1 * 3 + 2);
  const auto hnd = layers_of(tensors({2, 5, 3}, {1, 5, 3}), "HND");
  EXPECT_EQ(hnd[0].q.shape(), (Shape{1, 2, 5, 3}));
  EXPECT_EQ(hnd[0].q.at(0, 1, 4, 2), 1 * 15 + 4 * 3 + 2);
  EXPECT_TRUE(says(refusal(tensors({2, 5, 3}, {1, 5, 3}), "DNH"), "is 'DNH'; allowed: HND, NHD"));
}

TEST(CapturedLayers, a_tensor_of_four_dimensions_is_batch_heads_tokens_dims) {
  for (const std::string layout : {"", "HND", "NHD"}) {
    const auto layers = layers_of({counted("a.q", {2, 4, 5, 3}), counted("a.k", {2, 2, 7, 3}),
                                   counted("a.v", {2, 2, 7, 3}), counted("mask", {7})},
                                  layout);
    ASSERT_EQ(layers.size(), 1U);
    EXPECT_EQ(layers[0].name, "a");
    EXPECT_EQ(layers[0].q.shape(), (Shape{2, 4, 5, 3}));
    EXPECT_EQ(layers[0].q.at(1, 2, 3, 1), ((1 * 4 + 2) * 5 + 3) * 3 + 1);
    EXPECT_EQ(layers[0].k.at(1, 1, 6, 2), ((1 * 2 + 1) * 7 + 6) * 3 + 2);
  }
}

TEST(CapturedLayers, a_missing_tensor_is_named) {
  const Extents s{1, 1, 2, 2};
  EXPECT_TRUE(says(refusal({counted("q", s), counted("k", s)}), "has no tensor 'v'"));
  EXPECT_TRUE(says(refusal({counted("q", s), counted("v", s)}), "has no tensor 'k'"));
  EXPECT_TRUE(says(refusal({counted("x.k", s), counted("x.v", s)}), "has no tensor 'x.q'"));
  EXPECT_TRUE(says(refusal({counted("freq", s)}), "none of its 1 tensors is a q, k or v"));
}

TEST(CapturedLayers, shapes_that_do_not_belong_together_are_refused) {
  const auto with = [](const Extents& q, const Extents& k, const Extents& v) {
    return refusal({counted("q", q), counted("k", k), counted("v", v)});
  };
  EXPECT_TRUE(says(with({1, 2, 5, 3}, {1, 2, 5, 3}, {1, 2, 6, 3}), "k and v of one shape"));
  EXPECT_TRUE(says(with({1, 2, 5, 4}, {1, 2, 5, 3}, {1, 2, 5, 3}), "one head_dim"));
  EXPECT_TRUE(says(with({2, 2, 5, 3}, {1, 2, 5, 3}, {1, 2, 5, 3}), "one batch size"));
  EXPECT_TRUE(says(with({1, 3, 5, 3}, {1, 2, 5, 3}, {1, 2, 5, 3}), "multiple of the key heads"));
  EXPECT_TRUE(says(with({5, 3}, {1, 2, 5, 3}, {1, 2, 5, 3}), "tensor 'q' has shape [5, 3]"));
  EXPECT_TRUE(says(with({1, 2, 5, 3}, {1, 0, 5, 3}, {1, 2, 5, 3}), "none of them 0"));
  EXPECT_TRUE(says(with({1, 1, 1, 2000}, {1, 1, 1, 2000}, {1, 1, 1, 2000}), "'head_dim' is 2000"));
}

TEST(CapturedLayers, values_that_are_not_finite_are_counted_and_refused) {
  const Extents s{1, 1, 2, 2};
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    NamedValues k = counted("k", s);
    k.values[1] = k.values[3] = bad;
    EXPECT_TRUE(says(refusal({counted("q", s), k, counted("v", s)}),
                     "tensor 'k' holds 2 values that are NaN or infinite"));
  }
}

}  // namespace

namespace {

/// Rows of one head, each value that of the row: q from 0, k from 100, v from 200.
CapturedLayer layer_of_rows(std::int64_t queries, std::int64_t keys) {
  auto layers = layers_of({counted("q", {1, 1, queries, 1}), counted("k", {1, 1, keys, 1}, 100),
                           counted("v", {1, 1, keys, 1}, 200)});
  return std::move(layers.front());
}

/// Captured rows of the queries that a problem of the layer gets.
std::vector<float> queries_of(const InputFamily& family, std::int64_t query_len,
                              std::int64_t key_len, Mask mask) {
  const Problem problem{.query_len = query_len, .key_len = key_len, .head_dim = 1, .mask = mask};
  EXPECT_EQ(family.unsupported(problem), std::nullopt);
  const Inputs inputs = family.make(problem, {.seed = 9});
  for (std::int64_t n = 0; n < key_len; ++n) {
    EXPECT_EQ(inputs[forward::k].at(0, 0, n, 0), static_cast<float>(100 + n));
    EXPECT_EQ(inputs[forward::v].at(0, 0, n, 0), static_cast<float>(200 + n));
  }
  const auto values = inputs[forward::q].values();
  return {values.begin(), values.end()};
}

using Rows = std::vector<float>;

TEST(CapturedLayerFamily, a_step_of_decoding_has_the_queries_of_the_last_keys) {
  const InputFamily family = captured_layer_family(layer_of_rows(16, 16), "one");
  for (const Mask mask : {Mask::none, Mask::causal_bottom_right, Mask::window_bottom_right}) {
    EXPECT_EQ(queries_of(family, 1, 16, mask), Rows{15});
    EXPECT_EQ(queries_of(family, 8, 16, mask), (Rows{8, 9, 10, 11, 12, 13, 14, 15}));
    EXPECT_EQ(queries_of(family, 1, 7, mask), Rows{6}) << "an earlier step has fewer keys";
    EXPECT_EQ(queries_of(family, 3, 3, mask), (Rows{0, 1, 2}));
  }
}

TEST(CapturedLayerFamily, a_mask_from_the_top_left_puts_few_queries_at_the_first_keys) {
  const InputFamily family = captured_layer_family(layer_of_rows(16, 16), "one");
  for (const Mask mask : {Mask::causal_top_left, Mask::window_top_left})
    EXPECT_EQ(queries_of(family, 2, 16, mask), (Rows{0, 1}));
}

TEST(CapturedLayerFamily, the_last_captured_query_and_key_are_one_token) {
  const InputFamily family = captured_layer_family(layer_of_rows(3, 16), "one");
  EXPECT_EQ(queries_of(family, 3, 16, Mask::none), (Rows{0, 1, 2}));
  EXPECT_EQ(queries_of(family, 1, 16, Mask::none), Rows{2});
  EXPECT_EQ(queries_of(family, 1, 15, Mask::none), Rows{1});
  EXPECT_EQ(queries_of(family, 2, 9, Mask::none), (Rows{0, 1})) << "the nearest that there are";
  EXPECT_TRUE(family.unsupported({.query_len = 4, .key_len = 16, .head_dim = 1}).has_value());
  EXPECT_TRUE(family.unsupported({.query_len = 3, .key_len = 17, .head_dim = 1}).has_value());
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
