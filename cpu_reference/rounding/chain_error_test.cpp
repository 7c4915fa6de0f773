#include "cpu_reference/rounding/chain_error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/attention/tensor_core_product.hpp"
#include "core/inputs/random.hpp"
#include "cpu_reference/rounding/split_product.hpp"

// Sums of fp32 and 16-bit numbers against the same in double, which holds them exactly: the last
// bits of all terms lie within 2^40 of the sum.
namespace attest {
namespace {

/// |computed - exact| over what a piece allows: the largest of many sums.
class WorstShare {
 public:
  void add(double computed, double exact, double allowed) {
    worst_ = std::max(worst_, std::abs(computed - exact) / allowed);
  }
  [[nodiscard]] double value() const { return worst_; }

 private:
  double worst_ = 0;
};

/// Terms of one sum: of one sign or both, alike or 1 and then only `small` ones, each of which is
/// rounded at the last bit of a sum near 1.
std::vector<float> adversarial_terms(std::int64_t n, std::uint64_t seed, double small) {
  std::vector<float> terms;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    double x = 1 + random_uniform(seed, 0, index);
    if (seed % 4 == 0 && i > 0) x = small;
    if (seed % 4 == 1 && random_below(seed, 1, index, 2) == 0) x = -x;
    if (seed % 4 == 2) x = std::ldexp(x, static_cast<int>(random_below(seed, 2, index, 12)) - 12);
    terms.push_back(static_cast<float>(x));
  }
  if (seed % 4 == 0) terms[0] = 1;
  return terms;
}

TEST(ChainError, a_chain_of_fp32_additions_stays_within_its_roundings_and_comes_near) {
  for (const std::int64_t n : {2, 3, 17, 100, 1000}) {
    WorstShare worst;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      float sum = 0;
      double exact = 0, absolute = 0;
      for (const float x : adversarial_terms(n, seed, 0x1.01p-24)) {  // rounds up to an ulp
        sum += x;
        exact += static_cast<double>(x);
        absolute += static_cast<double>(std::abs(x));
      }
      const double steps = static_cast<double>(n - 1);
      worst.add(static_cast<double>(sum), exact,
                chain_error(steps, fp32_arithmetic.unit_roundoff) * absolute);
    }
    EXPECT_LE(worst.value(), 1) << n;
    EXPECT_GT(worst.value(), 0.1) << n;
  }
}

TEST(ChainError, a_chain_too_long_to_say_anything_says_so) {
  EXPECT_EQ(chain_error(0x1p24, 0x1p-24), std::numeric_limits<double>::infinity());
  EXPECT_EQ(chain_error(0, 0x1p-24), 0);
  EXPECT_EQ(accumulation_error({}, 0x1p25, 1, fp32_arithmetic),
            std::numeric_limits<double>::infinity());
}

/// The worst share of the error allowed to sums of `n` products formed as `how` says, in `sums`
/// sums that go on with one accumulator.
double worst_product_share(const Accumulation& how, std::int64_t n, std::int64_t sums,
                           double small) {
  WorstShare worst;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    // bf16 numbers, whose products are exact in fp32 and whose sums are in double.
    std::vector<float> left, right;
    for (const float x : adversarial_terms(n, seed, small)) {
      right.push_back(static_cast<float>(round_to(ElementType::bf16, static_cast<double>(x))));
      left.push_back(seed % 4 == 0 ? 1.0F : 1.5F);
    }
    double exact = 0, absolute = 0;
    for (std::size_t i = 0; i < left.size(); ++i) {
      exact += static_cast<double>(left[i]) * static_cast<double>(right[i]);
      absolute += std::abs(static_cast<double>(left[i]) * static_cast<double>(right[i]));
    }
    const ProductOperand operand(right, 1, ElementType::bf16);
    std::vector<float> sum{0};
    std::int64_t first = 0;
    for (std::int64_t part = 0; part < sums; ++part) {
      const std::int64_t last = n * (part + 1) / sums;
      accumulate_product(how,
                         std::span(left).subspan(static_cast<std::size_t>(first),
                                                 static_cast<std::size_t>(last - first)),
                         ElementType::bf16, operand, first, sum);
      first = last;
    }
    worst.add(static_cast<double>(sum[0]), exact,
              accumulation_error(how, static_cast<double>(n), static_cast<double>(sums),
                                 fp32_arithmetic) *
                  absolute);
  }
  return worst.value();
}

TEST(AccumulationError, sums_of_every_unit_stay_within_it_and_come_near) {
  for (const Accumulation& how :
       {Accumulation{}, volta(), turing(), ampere(), hopper(), hopper_tf32(), hopper_fp8()}) {
    // Half an ulp is lost in a tie; so is what lies below 2^-F, half of a number just below
    // 2^(1-F).
    const bool is_fma = how.kind == Accumulation::Kind::fp32_fma;
    const double small = is_fma ? 0x1p-24 : std::ldexp(2 - 0x1p-7, -how.fraction_bits);
    for (const std::int64_t n : {16, 31, 64, 257}) {
      const double worst = worst_product_share(how, n, 1, small);
      EXPECT_LE(worst, 1) << how.fused_terms << ' ' << n;
      EXPECT_GT(worst, 0.1) << how.fused_terms << ' ' << n;
    }
  }
}

TEST(AccumulationError, sums_that_each_begin_with_a_step_of_their_own_stay_within_it) {
  // One product a sum: a step each, though 16 would fit in one, and nearly an ulp cut from each.
  const double worst = worst_product_share(hopper(), 50, 50, 0x1p-23 * (1 - 0x1p-8));
  EXPECT_LE(worst, 1);
  EXPECT_GT(worst, 0.1);
}

}  // namespace
}  // namespace attest
