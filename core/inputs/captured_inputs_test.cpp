#include "core/inputs/captured_inputs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <set>
#include <tuple>

#include "core/base/error.hpp"
#include "core/base/temporary_folder.hpp"
#include "core/inputs/captured_inputs_test.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

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

TEST(CapturedFamily, the_same_spec_gives_the_same_values_and_another_seed_others) {
  const InputFamily family = small_family();
  const Problem problem = small_problem(Mask::none);
  const auto values = [&](const InputFamily& from, std::uint64_t seed) {
    const Inputs inputs = from.make(problem, {.family = "small", .seed = seed});
    std::vector<float> all;
    for (const Tensor<float>* tensor :
         {&inputs[forward::q], &inputs[forward::k], &inputs[forward::v]}) {
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
            const float first = inputs[forward::k].at(b, h, 0, 0);
            ASSERT_EQ(inputs[forward::k].at(b, h, n, d),
                      first + static_cast<float>(n * p.head_dim + d));
            ASSERT_EQ(inputs[forward::v].at(b, h, n, d), inputs[forward::k].at(b, h, n, d) + 1e4F);
          }
        }
        const auto [_, head, begin] = origin_of(inputs[forward::k].at(b, h, 0, 0), 1e4F, 2, 17, 4);
        ASSERT_LE(begin + p.key_len, 17) << "the window runs into the next head";
      }
    }
  });
}

TEST(CapturedFamily, query_heads_belong_to_the_captured_key_head_and_differ) {
  for_many_cases(small_family(), [](const Inputs& inputs, const Problem& p) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < p.kv_heads; ++h) {
        const auto [key_batch, key_head, _] =
            origin_of(inputs[forward::k].at(b, h, 0, 0), 1e4F, 2, 17, 4);
        std::set<std::int64_t> heads;
        for (std::int64_t r = 0; r < 4; ++r) {
          const auto [batch, head, begin] =
              origin_of(inputs[forward::q].at(b, h * 4 + r, 0, 0), 0, 6, 13, 4);
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
      const auto key = std::get<2>(origin_of(inputs[forward::k].at(b, 1, 0, 0), 1e4F, 2, 17, 4));
      const auto query = std::get<2>(origin_of(inputs[forward::q].at(b, 4, 0, 0), 0, 6, 13, 4));
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
  ASSERT_EQ(narrow[forward::v].shape(), value_shape(p));
  for (std::int64_t n = 0; n < p.key_len; ++n) {
    for (std::int64_t d = 0; d < 3; ++d)
      EXPECT_EQ(narrow[forward::v].at(0, 0, n, d), all[forward::v].at(0, 0, n, d));
  }
  p.value_dim = 5;
  EXPECT_EQ(family.unsupported(p)->find("\n"), std::string::npos);
}

TEST(CapturedFamily, windows_reach_both_ends_and_often_the_first_token) {
  std::vector<int> begins(11, 0);
  for_many_cases(small_family(), [&](const Inputs& inputs, const Problem& p) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const auto begin = std::get<2>(origin_of(inputs[forward::k].at(b, 0, 0, 0), 1e4F, 2, 17, 4));
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
    const auto key = std::get<2>(origin_of(inputs[forward::k].at(0, 0, 0, 0), 1e4F, 2, 17, 4));
    if (key == 0)
      distances.insert(std::get<2>(origin_of(inputs[forward::q].at(0, 0, 0, 0), 0, 6, 13, 4)));
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
    EXPECT_EQ(inputs[forward::q].shape(), query_shape(problem));
    EXPECT_EQ(inputs[forward::k].shape(), key_shape(problem));
    EXPECT_EQ(inputs[forward::v].shape(), key_shape(problem));
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
  EXPECT_EQ(inputs[forward::k].at(0, 0, 4, 2), 14);
  EXPECT_EQ(input_family("user_file").head_dims, Extents{3});
  EXPECT_THROW(add_captured_inputs(path, "again"), InvalidInput) << "the file is gone";
}

/// Adds the family once a process.
const InputFamily& real_family() {
  static const bool is_added = (add_real_inputs(), true);
  EXPECT_TRUE(is_added);
  return input_family("real");
}

TEST(RealInputs, the_binary_carries_layers_of_all_models) {
  const InputFamily& family = real_family();
  EXPECT_EQ(family.head_dims, (Extents{32, 64}));
  EXPECT_EQ(input_family("real_outliers").head_dims, Extents{64});
  EXPECT_EQ(input_family("real_audio").head_dims, Extents{64});
  EXPECT_THROW(add_real_inputs(), InvalidInput) << "the name is taken";
  for (const auto& [head_dim, tokens] : {std::pair{32, 512}, {64, 1024}}) {
    Problem problem{.query_heads = 3, .query_len = tokens, .key_len = tokens, .head_dim = head_dim};
    EXPECT_EQ(family.unsupported(problem), std::nullopt);
    problem.key_len = tokens + 1;
    EXPECT_NE(family.unsupported(problem), std::nullopt);
  }
}

// data/manifest.json: of the 64 channels of K in layer 0 some are far above the others.
TEST(RealInputs, outliers_are_channels_of_k) {
  (void)real_family();
  const Problem problem{.query_heads = 7, .query_len = 512, .key_len = 512, .head_dim = 64};
  double largest_ratio = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Inputs inputs =
        input_family("real_outliers").make(problem, {.family = "real_outliers", .seed = seed});
    std::vector<double> peaks(64);
    for (std::int64_t j = 0; j < 512; ++j) {
      const auto k = inputs[forward::k].row(0, 0, j);
      for (std::size_t d = 0; d < 64; ++d) {
        peaks[d] = std::max(peaks[d], static_cast<double>(std::abs(k[d])));
      }
    }
    std::ranges::sort(peaks);
    largest_ratio = std::max(largest_ratio, peaks.back() / peaks[32]);
  }
  EXPECT_GT(largest_ratio, 16);
}

// Speech goes on while tokens are written: the head was chosen for it (data/README.md).
TEST(RealInputs, cross_attention_looks_at_later_frames_for_later_tokens) {
  for (const EmbeddedCapture& capture : embedded_captures()) {
    for (const CapturedLayer& layer : embedded_layers(capture)) {
      if (layer.name != "whisper.cross_layer4") continue;
      ASSERT_EQ(layer.q.shape(), (Shape{1, 1, 84, 64}));
      ASSERT_EQ(layer.k.shape(), (Shape{1, 1, 1500, 64}));
      std::vector<std::int64_t> frames;
      for (std::int64_t i = 4; i < 84; ++i) {  // the text, after four tokens that ask for it
        const auto q = layer.q.row(0, 0, i);
        std::vector<double> dots;
        for (std::int64_t j = 0; j < 1500; ++j)
          dots.push_back(std::inner_product(q.begin(), q.end(), layer.k.row(0, 0, j).begin(), 0.0));
        frames.push_back(std::ranges::max_element(dots) - dots.begin());
      }
      EXPECT_TRUE(std::ranges::is_sorted(frames)) << testing::PrintToString(frames);
      return;
    }
  }
  FAIL() << "no such layer";
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
          const auto q = inputs[forward::q].row(0, h, i), k = inputs[forward::k].row(0, h, j);
          const double dot = std::inner_product(q.begin(), q.end(), k.begin(), 0.0);
          largest = std::max(largest, dot / std::sqrt(32.0));
        }
      }
    }
  }
  EXPECT_NEAR(largest, stated, rounding);
}

}  // namespace
}  // namespace attest
