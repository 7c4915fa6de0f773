#include "core/captured_inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "core/captured_layer_family.hpp"
#include "core/error.hpp"
#include "core/temporary_folder.hpp"

namespace attest {
namespace {

using Extents = std::vector<std::int64_t>;

struct NamedValues {
  std::string name;
  Extents shape;
  std::vector<float> values;
};

std::vector<std::byte> file_bytes(const std::vector<NamedValues>& tensors,
                                  const std::string& layout = "") {
  std::string header = "{", data;
  if (!layout.empty()) header += R"("__metadata__":{"attest.layout":")" + layout + "\"},";
  for (const NamedValues& tensor : tensors) {
    const std::size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * 4);
    header += fmt::format(R"("{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}},)",
                          tensor.name, fmt::join(tensor.shape, ","), begin, data.size());
  }
  header.back() = '}';
  const std::uint64_t length = header.size();
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  text += header + data;
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// Values first, first + 1, ... so that each tells where it came from.
NamedValues counted(const std::string& name, const Extents& shape, float first = 0) {
  const auto size =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  std::vector<float> values(static_cast<std::size_t>(size));
  std::iota(values.begin(), values.end(), first);
  return {name, shape, std::move(values)};
}

std::vector<CapturedLayer> layers_of(const std::vector<NamedValues>& tensors,
                                     const std::string& layout = "") {
  return captured_layers(Safetensors::from_bytes(file_bytes(tensors, layout), "t.safetensors"));
}

std::string refusal(const std::vector<NamedValues>& tensors, const std::string& layout = "") {
  try {
    (void)layers_of(tensors, layout);
  } catch (const InvalidInput& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "";
}

testing::AssertionResult says(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "message '" << message << "' lacks '" << part << "'";
}

/// A family over one layer: batch 2, 6 query and 2 key heads, 13 query and 17 key rows, D = 4,
/// every value different.
InputFamily small_family() {
  return captured_family(layers_of({counted("q", {2, 6, 13, 4}), counted("k", {2, 2, 17, 4}, 1e4F),
                                    counted("v", {2, 2, 17, 4}, 2e4F)}),
                         "small", "");
}

/// (batch, head, row) of a captured tensor whose values are counted from `first`.
using Origin = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
Origin origin_of(float value, float first, std::int64_t heads, std::int64_t rows,
                 std::int64_t dim) {
  const auto row = static_cast<std::int64_t>(value - first) / dim;
  return {row / (heads * rows), row / rows % heads, row % rows};
}

Problem small_problem(Mask mask) {
  return {.batch = 3,
          .query_heads = 8,
          .kv_heads = 2,
          .query_len = 5,
          .key_len = 7,
          .head_dim = 4,
          .mask = mask};
}

/// Calls check(inputs, problem) for every mask and many seeds.
template <typename Check>
void for_many_cases(const InputFamily& family, const Check& check) {
  for (const Mask mask : all_masks()) {
    for (std::uint64_t seed = 0; seed < 64; ++seed) {
      const Problem problem = small_problem(mask);
      check(family.make(problem, {.family = "small", .seed = seed}), problem);
    }
  }
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

TEST(CapturedFamily, the_same_spec_gives_the_same_values_and_another_seed_others) {
  const InputFamily family = small_family();
  const Problem problem = small_problem(Mask::none);
  const auto values = [&](const InputFamily& from, std::uint64_t seed) {
    const Inputs inputs = from.make(problem, {.family = "small", .seed = seed});
    std::vector<float> all;
    for (const Tensor<float>* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
      all.insert(all.end(), tensor->values().begin(), tensor->values().end());
    }
    return all;
  };
  std::set<std::vector<float>> different;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(values(family, seed), values(small_family(), seed));
    different.insert(values(family, seed));
  }
  EXPECT_EQ(different.size(), 20U);
}

TEST(CapturedFamily, every_head_is_a_window_of_consecutive_captured_rows) {
  for_many_cases(small_family(), [](const Inputs& inputs, const Problem& p) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < p.kv_heads; ++h) {
        for (std::int64_t n = 0; n < p.key_len; ++n) {
          for (std::int64_t d = 0; d < p.head_dim; ++d) {
            const float first = inputs.k.at(b, h, 0, 0);
            ASSERT_EQ(inputs.k.at(b, h, n, d), first + static_cast<float>(n * p.head_dim + d));
            ASSERT_EQ(inputs.v.at(b, h, n, d), inputs.k.at(b, h, n, d) + 1e4F);
          }
        }
        const auto [_, head, begin] = origin_of(inputs.k.at(b, h, 0, 0), 1e4F, 2, 17, 4);
        ASSERT_LE(begin + p.key_len, 17) << "the window runs into the next head";
      }
    }
  });
}

TEST(CapturedFamily, query_heads_belong_to_the_captured_key_head_and_differ) {
  for_many_cases(small_family(), [](const Inputs& inputs, const Problem& p) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < p.kv_heads; ++h) {
        const auto [key_batch, key_head, _] = origin_of(inputs.k.at(b, h, 0, 0), 1e4F, 2, 17, 4);
        std::set<std::int64_t> heads;
        for (std::int64_t r = 0; r < 4; ++r) {
          const auto [batch, head, begin] = origin_of(inputs.q.at(b, h * 4 + r, 0, 0), 0, 6, 13, 4);
          ASSERT_EQ(batch, key_batch);
          ASSERT_EQ(head / 3, key_head);
          ASSERT_LE(begin + p.query_len, 13);
          heads.insert(head);
        }
        ASSERT_EQ(heads.size(), 3U) << "three captured heads serve four: each at least once";
      }
    }
  });
}

TEST(CapturedFamily, a_mask_by_position_puts_queries_at_their_own_tokens) {
  // 13 queries and 17 keys were captured: the first query is the token of key 4.
  for_many_cases(small_family(), [](const Inputs& inputs, const Problem& p) {
    if (p.mask == Mask::none) return;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const auto key = std::get<2>(origin_of(inputs.k.at(b, 1, 0, 0), 1e4F, 2, 17, 4));
      const auto query = std::get<2>(origin_of(inputs.q.at(b, 4, 0, 0), 0, 6, 13, 4));
      const bool is_bottom_right =
          p.mask == Mask::causal_bottom_right || p.mask == Mask::window_bottom_right;
      const std::int64_t offset = is_bottom_right ? p.key_len - p.query_len : 0;
      ASSERT_EQ(query, std::max<std::int64_t>(0, key + offset - 4));
    }
  });
}

TEST(CapturedFamily, a_narrower_v_takes_the_first_columns_and_a_wider_one_is_unsupported) {
  const InputFamily family = small_family();
  Problem p{.query_len = 5, .key_len = 6, .head_dim = 4};
  const Inputs all = family.make(p, {.seed = 3});
  p.value_dim = 3;
  const Inputs narrow = family.make(p, {.seed = 3});
  ASSERT_EQ(narrow.v.shape(), value_shape(p));
  for (std::int64_t n = 0; n < p.key_len; ++n) {
    for (std::int64_t d = 0; d < 3; ++d) EXPECT_EQ(narrow.v.at(0, 0, n, d), all.v.at(0, 0, n, d));
  }
  p.value_dim = 5;
  EXPECT_EQ(family.unsupported(p)->find("\n"), std::string::npos);
}

TEST(CapturedFamily, windows_reach_both_ends_and_often_the_first_token) {
  std::vector<int> begins(11, 0);
  for_many_cases(small_family(), [&](const Inputs& inputs, const Problem& p) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const auto begin = std::get<2>(origin_of(inputs.k.at(b, 0, 0, 0), 1e4F, 2, 17, 4));
      ++begins.at(static_cast<std::size_t>(begin));
    }
  });
  EXPECT_GT(std::ranges::min(begins), 0);
  EXPECT_EQ(std::ranges::max_element(begins), begins.begin());
}

TEST(CapturedFamily, without_a_mask_queries_come_from_anywhere) {
  std::set<std::int64_t> distances;
  for_many_cases(small_family(), [&](const Inputs& inputs, const Problem& p) {
    if (p.mask != Mask::none) return;
    const auto key = std::get<2>(origin_of(inputs.k.at(0, 0, 0, 0), 1e4F, 2, 17, 4));
    if (key == 0) distances.insert(std::get<2>(origin_of(inputs.q.at(0, 0, 0, 0), 0, 6, 13, 4)));
  });
  EXPECT_GT(distances.size(), 1U) << "all queries stand at one distance from the first key";
}

TEST(CapturedFamily, one_row_all_rows_and_no_keys_are_cases_too) {
  const InputFamily family = small_family();
  for (const auto& [query_len, key_len] : {std::pair{1, 1}, {13, 17}, {12, 16}, {1, 17}, {13, 0}}) {
    Problem problem = small_problem(Mask::causal_bottom_right);
    problem.query_len = query_len;
    problem.key_len = key_len;
    ASSERT_EQ(family.unsupported(problem), std::nullopt);
    const Inputs inputs = family.make(problem, {.family = "small", .seed = 5});
    EXPECT_EQ(inputs.q.shape(), query_shape(problem));
    EXPECT_EQ(inputs.k.shape(), key_shape(problem));
    EXPECT_EQ(inputs.v.shape(), key_shape(problem));
  }
}

TEST(CapturedFamily, what_was_not_captured_is_unsupported_with_a_sentence) {
  const InputFamily family = small_family();
  const auto sentence = [&](std::int64_t query_len, std::int64_t key_len, std::int64_t head_dim) {
    Problem problem = small_problem(Mask::none);
    problem.query_len = query_len;
    problem.key_len = key_len;
    problem.head_dim = head_dim;
    return family.unsupported(problem).value_or("");
  };
  EXPECT_TRUE(says(sentence(5, 7, 8), "with head_dim 4; the problem has 8"));
  EXPECT_TRUE(says(sentence(14, 17, 4), "at most 13 and 17 query and key rows at head_dim 4"));
  EXPECT_TRUE(says(sentence(13, 18, 4), "the problem has 13 and 18"));
}

TEST(CapturedFamily, a_user_file_becomes_a_family_under_the_given_name) {
  const TemporaryFolder folder;
  const auto path = folder / "inputs.safetensors";
  const auto bytes =
      file_bytes({counted("q", {5, 2, 3}), counted("k", {5, 1, 3}), counted("v", {5, 1, 3})});
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  add_captured_inputs(path, "user_file");
  std::filesystem::remove(path);
  const Problem problem{.query_heads = 2, .query_len = 5, .key_len = 5, .head_dim = 3};
  const Inputs inputs = make_inputs(problem, {.family = "user_file", .seed = 1});
  EXPECT_EQ(inputs.k.at(0, 0, 4, 2), 14);
  EXPECT_EQ(input_family("user_file").head_dims, Extents{3});
  EXPECT_THROW(add_captured_inputs(path, "again"), InvalidInput) << "the file is gone";
}

/// Adds the family once a process.
const InputFamily& real_family() {
  static const bool is_added = (add_real_inputs(), true);
  EXPECT_TRUE(is_added);
  return input_family("real");
}

TEST(RealInputs, the_binary_carries_layers_of_both_models) {
  const InputFamily& family = real_family();
  EXPECT_EQ(family.head_dims, (Extents{32, 64}));
  EXPECT_THROW(add_real_inputs(), InvalidInput) << "the name is taken";
  for (const auto& [head_dim, tokens] : {std::pair{32, 512}, {64, 1024}}) {
    Problem problem{.query_heads = 3, .query_len = tokens, .key_len = tokens, .head_dim = head_dim};
    EXPECT_EQ(family.unsupported(problem), std::nullopt);
    problem.key_len = tokens + 1;
    EXPECT_NE(family.unsupported(problem), std::nullopt);
  }
}

TEST(RealInputs, logits_have_the_extremes_that_the_manifest_states) {
  // data/manifest.json, rounded to two decimals there: MiniLM layer 0 over all pairs.
  constexpr double stated = 75.55, rounding = 0.005;
  const Problem problem{
      .query_heads = 3, .kv_heads = 3, .query_len = 512, .key_len = 512, .head_dim = 32};
  double largest = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Inputs inputs = real_family().make(problem, {.family = "real", .seed = seed});
    for (std::int64_t h = 0; h < 3; ++h) {
      for (std::int64_t i = 0; i < 512; ++i) {
        for (std::int64_t j = 0; j < 512; ++j) {
          const auto q = inputs.q.row(0, h, i), k = inputs.k.row(0, h, j);
          const double dot = std::inner_product(q.begin(), q.end(), k.begin(), 0.0);
          largest = std::max(largest, dot / std::sqrt(32.0));
        }
      }
    }
  }
  EXPECT_NEAR(largest, stated, rounding);
}

TEST(CapturedLayerFamily, a_layer_with_fewer_queries_than_keys_is_taken_whole) {
  const auto layers = layers_of(
      {counted("q", {1, 1, 2, 2}), counted("k", {1, 1, 5, 2}), counted("v", {1, 1, 5, 2})});
  const InputFamily family = captured_layer_family(layers.front(), "one");
  Problem problem{.query_len = 2, .key_len = 5, .head_dim = 2};
  EXPECT_FALSE(family.unsupported(problem).has_value());
  EXPECT_EQ(family.make(problem, {}).k.at(0, 0, 4, 1), 9);
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
      EXPECT_EQ(inputs.q.at(0, 3, n, 1), static_cast<float>((3 * 6 + n) * 2 + 1));
      EXPECT_EQ(inputs.k.at(0, 1, n, 0), static_cast<float>(100 + (6 + n) * 2));
      EXPECT_EQ(inputs.v.at(0, 1, n, 0), static_cast<float>(200 + (6 + n) * 2));
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
