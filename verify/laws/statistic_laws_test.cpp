// Laws of the statistics layer against saboteurs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/operations/forward_arguments.hpp"
#include "verify/laws/sabotage_test.hpp"

namespace attest {
namespace {

/// Enough rows and columns for every statistic.
Case many_rows() {
  return {.kernel = "o5_deferred",
          .problem = {.query_heads = 2,
                      .query_len = 64,
                      .key_len = 96,
                      .head_dim = 64,
                      .scale = default_scale(64)},
          .plan = {.key_tile = 16},
          .inputs = {.seed = 3}};
}

/// `change(o, row, column)` of every element.
Sabotage each_element(std::function<float(float, std::int64_t, std::int64_t)> change) {
  return [change = std::move(change)](const ForwardArguments& a) {
    const ElementType type = a.problem.element_type;
    const std::size_t size = format_of(type).size_bytes;
    for (std::int64_t row = 0; row < a.problem.query_heads * a.problem.query_len; ++row) {
      for (std::int64_t d = 0; d < a.problem.head_dim; ++d) {
        std::byte* const at =
            static_cast<std::byte*>(a.o) +
            size * static_cast<std::size_t>(
                       a.o_strides.offset(0, row / a.problem.query_len, row % a.problem.query_len) +
                       d);
        std::uint32_t bits = 0;
        std::memcpy(&bits, at, size);
        const float changed = change(decode(type, bits), row, d);
        bits = encode(type, static_cast<float>(round_to(type, static_cast<double>(changed))));
        std::memcpy(at, &bits, size);
      }
    }
  };
}

float alternating(std::int64_t number) {
  return number % 2 == 0 ? 1.0F : -1.0F;
}

TEST(StatisticLaws, ErrorsOfOThatRoundingsDoNotExplainAreCaught) {
  const auto caught = [](const std::string& law,
                         std::function<float(float, std::int64_t, std::int64_t)> change) {
    Case c = many_rows();
    // In fp32 the normaliser's chain outweighs what columns have for themselves, and a mean square
    // over columns that err together says nothing.
    if (law.ends_with("rms")) c.problem.element_type = ElementType::bf16;
    expect_caught(law, each_element(std::move(change)), c);
  };
  caught("o_largest_deviation", [](float o, std::int64_t row, std::int64_t d) {
    return row == 17 && d == 5 ? o + 1e-5F : o;
  });
  caught("o_row_rms", [](float o, std::int64_t row, std::int64_t d) {
    return row == 17 ? o * (1 + 8e-3F * alternating(d)) : o;
  });
  caught("o_rms", [](float o, std::int64_t row, std::int64_t d) {
    return o * (1 + 8e-3F * alternating(row + d));
  });
  caught("o_gain", [](float o, std::int64_t, std::int64_t) { return o * (1 + 2e-6F); });
  caught("o_row_gain", [](float o, std::int64_t row, std::int64_t) {
    return o * (1 + 6e-6F * alternating(row));
  });
  caught("o_bias", [](float o, std::int64_t, std::int64_t) { return o + 1e-6F; });
}

TEST(StatisticLaws, AScaleOffByAFewRoundingsIsCaught) {
  expect_caught(
      "o_temperature",
      [](const ForwardArguments& a) {
        ForwardArguments other = a;
        other.problem.scale *= 1 + 2e-5F;
        HostMemoryDevice device;
        find_kernel("o5_deferred", Executor::cpu)->launch(other, device);
      },
      many_rows());
}

TEST(StatisticLaws, ErrorsOfLseThatRoundingsDoNotExplainAreCaught) {
  const auto caught = [](const std::string& law, std::function<float(std::int64_t)> error) {
    expect_caught(
        law,
        [error](const ForwardArguments& a) {
          for (std::int64_t row = 0; row < a.problem.rows(); ++row) a.lse[row] += error(row);
        },
        many_rows());
  };
  caught("lse_largest_deviation", [](std::int64_t row) { return row == 17 ? 1e-5F : 0.0F; });
  caught("lse_rms", [](std::int64_t row) { return 4e-6F * alternating(row); });
  caught("lse_bias", [](std::int64_t) { return 3e-6F; });
}

/// A kernel of the executor that says it runs on a GPU, spoilt or not.
Verdict verdict_of_bits(const std::string& name, const Sabotage& sabotage) {
  const KernelInfo* const original = find_kernel(name, Executor::simt);
  Case c = plain_case();
  c.kernel = name;
  c.problem.element_type = original->element_types.front();
  c.plan = original->plans(c.problem).front();
  KernelInfo kernel = *original;
  kernel.executor = Executor::gpu;
  kernel.launch = [&](const ForwardArguments& a, Device& device) {
    original->launch(a, device);
    sabotage(a);
  };
  const auto device = make_device(Executor::simt);
  Run run(kernel, c, *device);
  return verify_case(run, {.glob = "executor_matches_bitwise", .every_law = true}).verdict;
}

TEST(StatisticLaws, OtherBitsThanTheExecutorsAreCaught) {
  const auto nothing = [](const ForwardArguments&) {};
  const auto last_bit = [](const ForwardArguments& a) { *static_cast<unsigned char*>(a.o) ^= 1U; };
  const auto lse = [](const ForwardArguments& a) { a.lse[0] = std::nextafter(a.lse[0], 99.0F); };
  for (const std::string name : {"k10_wide_tiles", "fa2_mma"}) {
    EXPECT_EQ(verdict_of_bits(name, nothing), Verdict::passed) << name;
    EXPECT_EQ(verdict_of_bits(name, last_bit), Verdict::failed) << name;
    EXPECT_EQ(verdict_of_bits(name, lse), Verdict::failed) << name;
  }
  // expf is CUDA's own there and glibc's here: no claim.
  EXPECT_EQ(verdict_of_bits("k1_naive", lse), Verdict::passed);
}

}  // namespace
}  // namespace attest
