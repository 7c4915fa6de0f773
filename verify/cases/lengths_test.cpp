#include "verify/cases/lengths.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.hpp"
#include "core/run/registry.hpp"
#include "verify/cases/generators.hpp"

namespace attest {
namespace {

std::string refusal_of(std::string_view text) {
  try {
    (void)length_weights_from(text);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Lengths, WeightsReadBackFromTheirText) {
  EXPECT_EQ(length_weights_from(to_string(LengthWeights{})), LengthWeights{});
  EXPECT_EQ(length_weights_from("one:2"), (LengthWeights{0, /*one=*/2, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Lengths, FaultyTextGetsOneLineThatSaysWhatIsAllowed) {
  const std::string allowed =
      "; allowed: KIND:WEIGHT separated by commas, weights 0 to 1000, kinds tile-edges, one, "
      "primes, uniform, mod128, zero, many-tiles, square-tiles, few-queries, heavy-tail";
  EXPECT_EQ(refusal_of("ones:1"), "--lengths 'ones:1': 'ones' is no kind of length" + allowed);
  EXPECT_EQ(refusal_of("one"), "--lengths 'one': 'one' has no weight" + allowed);
  EXPECT_EQ(refusal_of("one:-1"), "--lengths 'one:-1': '-1' is no weight" + allowed);
  EXPECT_EQ(refusal_of("one:1x"), "--lengths 'one:1x': '1x' is no weight" + allowed);
  EXPECT_EQ(refusal_of("one:1,one:2"),
            "--lengths 'one:1,one:2': 'one' stands there twice" + allowed);
  EXPECT_EQ(refusal_of("one:1,"), "--lengths 'one:1,': '' is no kind of length" + allowed);
  for (const std::string only :
       {"zero:1", "many-tiles:1", "square-tiles:1,zero:1", "few-queries:1", "heavy-tail:2"}) {
    EXPECT_EQ(
        refusal_of(only),
        "--lengths '" + only + "': no kind of length that queries can have has a weight" + allowed);
  }
}

TEST(Lengths, OnlyKindsWithAWeightAreDrawnAndLimitsAreKept) {
  const KernelInfo& k3 = *find_kernel("k3_sequence_parallel", Executor::simt);
  GeneratorOptions options;
  options.lengths = length_weights_from("mod128:1");
  options.max_len = 256;
  options.max_batch = 1;
  options.max_query_heads = 1;
  options.max_head_dim = 16;
  int drawn = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto c = draw_case(k3, options, 3, i);
    if (!c || c->inputs.family == "negative_shift") continue;  // often one key
    ++drawn;
    const std::int64_t r = c->problem.key_len % 128;
    EXPECT_TRUE(r == 64 || r == 2 || r == 8 || r == 120 || r == 126 || c->problem.key_len == 1 ||
                c->problem.key_len == options.max_len)
        << c->problem.key_len;
    EXPECT_EQ(c->problem.batch * c->problem.query_heads, 1);
    EXPECT_LE(c->problem.head_dim, 16);
    EXPECT_LE(c->problem.query_len, 256);
  }
  EXPECT_GT(drawn, 50);
}

TEST(Lengths, ManyKeyTilesComeWithMaximaThatMoveAndNotWhereTheyHaveNoWeight) {
  const KernelInfo& k3 = *find_kernel("k3_sequence_parallel", Executor::simt);
  GeneratorOptions options;
  options.lengths = length_weights_from("one:1,many-tiles:1");
  int many = 0, one = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto c = draw_case(k3, options, 3, i);
    if (!c || c->inputs.family == "negative_shift") continue;  // often one key
    const Problem& p = c->problem;
    if (p.key_len <= p.query_len || p.key_len == 1) {
      ++one;
      continue;
    }
    ++many;
    EXPECT_GE(p.key_len, std::min(3 * c->plan.key_tile - 1, 4 * usual_sizes.len));
    EXPECT_LE(p.key_len, std::min(5 * c->plan.key_tile + 1, 4 * usual_sizes.len));
    EXPECT_TRUE(c->inputs.family.ends_with("maxima") || c->inputs.family == "dominant_key" ||
                c->inputs.family == "sink")
        << c->inputs.family;
  }
  EXPECT_GT(many, 10);
  EXPECT_GT(one, 10);
}

}  // namespace
}  // namespace attest
