#include "cpu_reference/forward/online_softmax.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/precision_plan.hpp"
#include "core/inputs/random.hpp"
#include "cpu_reference/forward/online_softmax_rows.hpp"

namespace attest {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr double u = 0x1p-24;
constexpr std::int64_t dim = 3;

struct Keys {
  std::vector<float> scores;
  std::vector<float> values;  // [keys, dim]

  [[nodiscard]] const float* value(std::size_t key) const {
    return values.data() + key * static_cast<std::size_t>(dim);
  }
};

Keys random_keys(std::uint64_t seed, std::size_t count, double spread) {
  Keys keys;
  for (std::size_t j = 0; j < count; ++j) {
    keys.scores.push_back(static_cast<float>(spread * random_normal(seed, 0, j)));
    for (std::uint64_t c = 0; c < dim; ++c) {
      keys.values.push_back(static_cast<float>(random_normal(seed, 1, j * dim + c)));
    }
  }
  return keys;
}

/// The sums of the invariant in double, whose own error is 1e8 times smaller than what is tested.
struct ExactSums {
  double m = -INFINITY, l = 0, spread = 0;
  std::array<double, dim> acc{}, acc_abs{};

  explicit ExactSums(const Keys& keys) {
    for (const float s : keys.scores) m = std::max(m, static_cast<double>(s));
    for (std::size_t j = 0; j < keys.scores.size(); ++j) {
      const double score = static_cast<double>(keys.scores[j]);
      if (score == -INFINITY) continue;
      spread = std::max(spread, m - score);
      l += std::exp(score - m);
      for (std::size_t c = 0; c < dim; ++c) {
        const double term = std::exp(score - m) * static_cast<double>(keys.value(j)[c]);
        acc[c] += term;
        acc_abs[c] += std::abs(term);
      }
    }
  }

  /// Relative error of one sum of `keys` terms after `rescales` rescales: each term has its exp, an
  /// exp and two roundings a rescale (product; product and sum in a merge), its additions, and
  /// arguments whose rounded differences add up to at most twice the spread (merged partial results
  /// may start below a key's own maximum).
  [[nodiscard]] double relative_bound(std::size_t keys, std::size_t rescales) const {
    const double r = static_cast<double>(rescales);
    const double sum = (r + 1) * library_expf().relative_error +
                       (2 * r + static_cast<double>(keys) + 1) * u + 2 * u * spread;
    return std::expm1(sum);
  }
};

::testing::AssertionResult invariant_holds(const OnlineState& state, const Keys& keys,
                                           std::size_t rescales) {
  const ExactSums exact(keys);
  const double relative = exact.relative_bound(keys.scores.size(), rescales);
  if (!(static_cast<double>(state.m) == exact.m)) {
    return ::testing::AssertionFailure() << "m is " << state.m << ", want " << exact.m;
  }
  const double l_error = std::abs(static_cast<double>(state.l) - exact.l);
  if (!(l_error <= relative * exact.l)) {
    return ::testing::AssertionFailure()
           << "l is " << state.l << ", want " << exact.l << " within " << relative * exact.l;
  }
  for (std::size_t c = 0; c < dim; ++c) {
    const double error = std::abs(static_cast<double>(state.acc[c]) - exact.acc[c]);
    if (!(error <= relative * exact.acc_abs[c])) {
      return ::testing::AssertionFailure()
             << "acc[" << c << "] is " << state.acc[c] << ", want " << exact.acc[c] << " within "
             << relative * exact.acc_abs[c];
    }
  }
  return ::testing::AssertionSuccess();
}

OnlineState state_of(const Keys& keys, std::size_t begin, std::size_t end) {
  OnlineState state(dim);
  state.update(std::span(keys.scores).subspan(begin, end - begin), keys.value(begin));
  return state;
}

bool same_state(const OnlineState& a, const OnlineState& b) {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  return bits(a.m) == bits(b.m) && bits(a.l) == bits(b.l) &&
         std::equal(a.acc.begin(), a.acc.end(), b.acc.begin(), b.acc.end(),
                    [&](float x, float y) { return bits(x) == bits(y); });
}

TEST(OnlineSoftmax, golden_statistics_of_1_2_3_4_in_blocks_of_two) {
  OnlineState state;
  state.update(std::array{1.0F, 2.0F}, nullptr);
  EXPECT_EQ(state.m, 2.0F);
  EXPECT_EQ(fmt::format("{:.6f}", state.l), "1.367879");
  state.update(std::array{3.0F, 4.0F}, nullptr);
  EXPECT_EQ(state.m, 4.0F);
  EXPECT_EQ(fmt::format("{:.6f}", state.l), "1.553002");
  std::vector<std::string> softmax;
  for (const float x : {1.0F, 2.0F, 3.0F, 4.0F}) {
    softmax.push_back(fmt::format("{:.7f}", std::exp(x - state.m) / state.l));
  }
  EXPECT_EQ(softmax,
            (std::vector<std::string>{"0.0320586", "0.0871443", "0.2368828", "0.6439143"}));
}

TEST(OnlineSoftmax, golden_update_with_values_gives_five_and_six_sevenths) {
  const float ln2 = std::numbers::ln2_v<float>;
  OnlineState state(2);
  state.update(std::array{0.0F, ln2}, std::array{1.0F, 0.0F, 0.0F, 1.0F}.data());
  EXPECT_EQ(state.m, ln2);
  EXPECT_EQ(fmt::format("{:.6f} {:.6f} {:.6f}", state.l, state.acc[0], state.acc[1]),
            "1.500000 0.500000 1.000000");
  state.update(std::array{2 * ln2}, std::array{1.0F, 1.0F}.data());
  EXPECT_EQ(state.m, 2 * ln2);
  EXPECT_EQ(fmt::format("{:.6f} {:.6f} {:.6f}", state.l, state.acc[0], state.acc[1]),
            "1.750000 1.250000 1.500000");
  std::array<float, 2> o{};
  EXPECT_EQ(fmt::format("{:.6f}", state.finish(o)), fmt::format("{:.6f}", std::log(7.0)));
  EXPECT_EQ(fmt::format("{:.6f} {:.6f}", o[0], o[1]),
            fmt::format("{:.6f} {:.6f}", 5.0 / 7, 6.0 / 7));
}

TEST(OnlineSoftmax, scores_below_every_finite_sentinel_keep_their_sum) {
  OnlineState state;
  state.update(std::array{-2e9F, -2e9F}, nullptr);
  state.update(std::array{-2e9F}, nullptr);
  EXPECT_EQ(state.m, -2e9F);
  EXPECT_EQ(state.l, 3.0F);
}

TEST(OnlineSoftmax, the_invariant_holds_for_any_block_split) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto count = static_cast<std::size_t>(1 + random_below(seed, 2, 0, 70));
    const Keys keys = random_keys(seed, count, seed % 3 == 0 ? 0.0 : seed % 3 == 1 ? 1.0 : 20.0);
    OnlineState state(dim);
    std::size_t blocks = 0;
    for (std::size_t begin = 0; begin < count; ++blocks) {
      const auto size = static_cast<std::size_t>(random_below(seed, 3, blocks, 9));  // 0 is allowed
      const std::size_t end = std::min(begin + size, count);
      state.update(std::span(keys.scores).subspan(begin, end - begin), keys.value(begin));
      begin = end;
    }
    EXPECT_TRUE(invariant_holds(state, keys, blocks)) << "seed " << seed;
  }
}

TEST(OnlineSoftmax, the_invariant_holds_for_any_order_of_merges) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto count = static_cast<std::size_t>(2 + random_below(seed, 2, 0, 60));
    const Keys keys = random_keys(seed, count, 10.0);
    std::vector<OnlineState> parts;
    for (std::size_t begin = 0; begin < count; begin += 7) {
      parts.push_back(state_of(keys, begin, std::min(begin + 7, count)));
    }
    parts.emplace_back(dim);  // an empty part may stand anywhere
    const std::size_t merges = parts.size();
    while (parts.size() > 1) {
      const auto pick = [&](std::uint64_t stream) {
        const auto size = static_cast<std::int64_t>(parts.size());
        return static_cast<std::size_t>(random_below(seed, stream, parts.size(), size));
      };
      std::swap(parts[pick(5)], parts.back());
      const OnlineState taken = parts.back();
      parts.pop_back();
      parts[pick(6)].merge(taken);
    }
    EXPECT_TRUE(invariant_holds(parts.front(), keys, merges)) << "seed " << seed;
  }
}

TEST(OnlineSoftmax, an_empty_or_invisible_block_changes_no_bit) {
  const Keys keys = random_keys(1, 5, 3.0);
  const std::array invisible{-infinity, -infinity};
  const std::vector<float> poison(2 * dim, nan_value);
  for (const OnlineState& before : {OnlineState(dim), state_of(keys, 0, 5)}) {
    OnlineState after = before;
    after.update({}, nullptr);
    after.update(invisible, poison.data());
    after.merge(OnlineState(dim));
    EXPECT_TRUE(same_state(before, after)) << "m " << before.m << " became " << after.m;
  }
}

TEST(OnlineSoftmax, merging_into_an_empty_state_copies_it) {
  const OnlineState part = state_of(random_keys(2, 9, 5.0), 0, 9);
  OnlineState state(dim);
  state.merge(part);
  EXPECT_TRUE(same_state(state, part));
}

TEST(OnlineSoftmax, the_value_row_of_an_invisible_key_is_not_read) {
  Keys keys = random_keys(3, 4, 1.0);
  keys.scores[2] = -infinity;
  std::fill_n(keys.values.begin() + 2 * dim, dim, nan_value);
  const OnlineState state = state_of(keys, 0, 4);
  for (const float a : state.acc) EXPECT_FALSE(std::isnan(a));
}

TEST(OnlineSoftmax, a_nan_score_makes_the_row_nan_wherever_it_stands) {
  for (std::size_t at = 0; at < 6; ++at) {
    Keys keys = random_keys(4, 6, 1.0);
    keys.scores[at] = nan_value;
    for (const std::size_t block : {1U, 2U, 6U}) {
      OnlineState state(dim);
      for (std::size_t begin = 0; begin < 6; begin += block) {
        state.update(std::span(keys.scores).subspan(begin, block), keys.value(begin));
      }
      std::array<float, dim> o{};
      EXPECT_TRUE(std::isnan(state.finish(o))) << "key " << at << ", blocks of " << block;
      for (const float x : o) EXPECT_TRUE(std::isnan(x)) << "key " << at << ", block " << block;
    }
  }
}

TEST(OnlineSoftmax, a_row_without_keys_finishes_as_zero_and_minus_infinity) {
  std::array<float, dim> o{1.0F, 2.0F, 3.0F};
  EXPECT_EQ(OnlineState(dim).finish(o), -infinity);
  EXPECT_EQ(o, (std::array<float, dim>{}));
}

TEST(OnlineSoftmax, split_ranges_cover_every_key_once_in_whole_tiles) {
  for (const std::int64_t keys : {0, 1, 2, 15, 16, 17, 31, 33, 97}) {
    for (const std::int64_t tile : {1, 3, 16}) {
      for (const std::int64_t splits : {1, 2, 3, 7}) {
        std::int64_t next = 0;
        for (std::int64_t i = 0; i < splits; ++i) {
          const KeyRange range = split_range(keys, tile, splits, i);
          EXPECT_EQ(range.begin, next);
          EXPECT_LE(range.begin, range.end);
          EXPECT_TRUE(range.end == keys || range.end % tile == 0);
          next = range.end;
        }
        EXPECT_EQ(next, keys) << "keys " << keys << ", tile " << tile << ", splits " << splits;
      }
    }
  }
}

TEST(OnlineSoftmaxRows, every_term_is_one_fused_multiply_add) {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: rounding the product first would lose the last bit, and with
  // it the result.
  const float a = 1 + 0x1p-12F;
  const std::vector<float> row(37, a);
  std::vector<float> sum(37, -(1 + 0x1p-11F));
  multiply_accumulate({&a, 1}, row.data(), 0, sum);
  for (const float x : sum) EXPECT_EQ(x, 0x1p-24F);
}

TEST(OnlineSoftmaxRows, rows_are_added_in_order) {
  // 2^24 + 1 + 1 = 2^24 but 1 + 1 + 2^24 = 2^24 + 2, in fp32 rounded to even.
  const std::vector<float> rows{0x1p24F, 1.0F, 1.0F, 1.0F, 1.0F, 0x1p24F};
  const std::vector<float> ones(3, 1.0F);
  std::vector<float> sum(2, 0.0F);
  multiply_accumulate(ones, rows.data(), 2, sum);
  EXPECT_EQ(sum[0], 0x1p24F);
  EXPECT_EQ(sum[1], 0x1p24F + 2);
}

}  // namespace
}  // namespace attest
