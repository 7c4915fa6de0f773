// Sinks, ALiBi, biases, prefixes, documents and dropout: what they are, before anybody computes
// with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/attention/dropout.hpp"
#include "core/attention/problem_field.hpp"
#include "core/base/error.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/run/kernel.hpp"

namespace attest {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

Problem modified(const std::string& rest) {
  return problem_from_string("b3 h4/2 q5 k6 d8 " + rest);
}

Inputs drawn_inputs(const Problem& problem, std::uint64_t seed = 5) {
  return make_inputs(problem, {.family = "normal", .seed = seed, .magnitude = 1});
}

TEST(ScoreModifications, AreFieldsOfForwardAndBackward) {
  const auto expect_field_of = [](const std::string& operation, const std::string& field) {
    const Problem problem = modified(operation + " causal_top_left " + field);
    EXPECT_EQ(problem_from_string(to_string(problem)), problem) << field;
    EXPECT_NE(to_string(problem).find(field), std::string::npos);
  };
  const auto expect_refused = [](const std::string& operation, const std::string& field) {
    EXPECT_THROW((void)modified(operation + " " + field), InvalidInput) << operation << field;
  };
  for (const std::string field : {"prefix3", "documents3", "lists3", "sinks_given", "slopes_given",
                                  "bias_heads", "dropout0.1", "philox7", "offset9"}) {
    for (const std::string operation : {"", "backward"}) expect_field_of(operation, field);
    for (const std::string other : {"quantised", "gradient"}) expect_refused(other, field);
  }
}

TEST(ScoreModifications, ProblemsThatAreNoneAreRefusedByALineThatSaysWhatIsAllowed) {
  for (const std::string text : {"dropout1.5", "dropout-0.5", "philox-1", "offset4294967296",
                                 "prefix3 window_top_left left2", "bias_rows", "sinks_none2"}) {
    try {
      (void)modified(text);
      FAIL() << text;
    } catch (const InvalidInput& error) {
      const std::string line = error.what();
      EXPECT_NE(line.find("allowed: "), std::string::npos) << line;
      EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    }
  }
}

TEST(ScoreModifications, ABiasOfMorePairsThanCanBeCountedIsRefused) {
  const std::string sizes = "b1024 h1024 q16777216 k16777216 d1";
  EXPECT_NO_THROW((void)problem_from_string(sizes));
  EXPECT_THROW((void)problem_from_string(sizes + " bias_full"), InvalidInput);
}

TEST(ScoreModifications, AreTensorsWhereTheyAreGivenAndElseNone) {
  const Problem plain = modified("");
  for (const InputIndex input : {forward::sinks, forward::slopes, forward::bias}) {
    EXPECT_FALSE(has_tensor(plain, input));
    EXPECT_EQ(drawn_inputs(plain)[input].size(), 0);
  }
  EXPECT_EQ(drawn_inputs(modified("sinks_given"))[forward::sinks].shape(), (Shape{1, 4, 1, 1}));
  EXPECT_EQ(drawn_inputs(modified("slopes_given"))[forward::slopes].shape(), (Shape{1, 4, 1, 1}));
  for (const auto& [kind, entries, heads] :
       {std::tuple{"full", 3, 4}, {"heads", 1, 4}, {"entries", 3, 1}, {"shared", 1, 1}}) {
    const Problem given = modified(std::string("bias_") + kind);
    EXPECT_EQ(drawn_inputs(given)[forward::bias].shape(), (Shape{entries, heads, 5, 6})) << kind;
    EXPECT_EQ(tensor_bytes(given) - tensor_bytes(plain), 4.0 * entries * heads * 5 * 6) << kind;
  }
}

TEST(ScoreModifications, ChangeNoOtherInput) {
  const Problem plain = modified(""), given = modified("sinks_given slopes_given bias_full");
  for (const InputFamily* family : families_of(forward_operation)) {
    if (!family->head_dims.empty()) continue;
    const InputSpec spec{.family = family->name, .seed = 5};
    const Inputs with = make_inputs(given, spec), without = make_inputs(plain, spec);
    for (const InputIndex input : {forward::q, forward::k, forward::v}) {
      EXPECT_TRUE(std::ranges::equal(with[input].values(), without[input].values()));
    }
  }
}

TEST(ScoreModifications, AreDrawnOfAllSizesAndNeverAsWhatIsNotDefined) {
  const Problem given = problem_from_string("h64 q9 k11 d8 sinks_given slopes_given bias_full");
  bool has_zero[3] = {}, has_hidden[3] = {}, has_large[3] = {}, has_negative[3] = {};
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Inputs inputs = drawn_inputs(given, seed);
    int i = 0;
    for (const InputIndex input : {forward::sinks, forward::slopes, forward::bias}) {
      for (const float x : inputs[input].values()) {
        ASSERT_TRUE(std::isfinite(x) || x == minus_infinity);
        has_zero[i] = has_zero[i] || x == 0;
        has_hidden[i] = has_hidden[i] || x == minus_infinity;
        has_large[i] = has_large[i] || (std::isfinite(x) && std::abs(x) > 20);
        has_negative[i] = has_negative[i] || (std::isfinite(x) && x < 0);
      }
      ++i;
    }
  }
  for (const int i : {0, 1, 2}) {
    EXPECT_TRUE(has_zero[i] && has_large[i] && has_negative[i]) << i;
    EXPECT_EQ(has_hidden[i], i != 1) << "a slope of -infinity is none";
  }
}

TEST(ScoreModifications, AKernelThatDoesNotClaimOneIsNotAskedForIt) {
  KernelInfo kernel;
  kernel.name = "some";
  kernel.element_types = {ElementType::fp32};
  kernel.masks = {Mask::none};
  for (const auto& [text, refusal] : {std::pair{"sinks_given", "some has no learned sinks"},
                                      {"slopes_given", "some has no slopes of ALiBi"},
                                      {"bias_shared", "some adds no bias to scores"},
                                      {"prefix2", "some has no prefix that all queries see"},
                                      {"documents2", "some has no documents in an entry"},
                                      {"dropout0.5", "some has no dropout"}}) {
    const auto why = why_unsupported(kernel, modified(text), Plan{});
    ASSERT_TRUE(why) << text;
    EXPECT_EQ(why->substr(0, std::string(refusal).size()), refusal);
  }
  EXPECT_FALSE(why_unsupported(kernel, modified(""), Plan{}));
}

// 5 queries, 6 keys: the diagonal of query i is key i, or i + 1 where the last ones meet.
TEST(ScoreModifications, DistancesAreCountedFromTheDiagonalOfTheMask) {
  for (const Mask mask : all_masks()) {
    const bool is_top_left = mask == Mask::causal_top_left || mask == Mask::window_top_left;
    Problem problem = modified("slopes_given");
    problem.mask = mask;
    Inputs inputs = drawn_inputs(problem);
    inputs[forward::slopes].at(0, 2, 0, 0) = 0.75F;
    for (std::int64_t n = 0; n < 5; ++n) {
      for (std::int64_t j = 0; j < 6; ++j) {
        const std::int64_t distance = j - n - (is_top_left ? 0 : 1);
        EXPECT_EQ(key_distance(mask, 5, 6, n, j), distance);
        EXPECT_EQ(forward::alibi_of(problem, inputs, 1, 2, n, j),
                  -0.75 * static_cast<double>(std::abs(distance)));
      }
    }
  }
}

TEST(ScoreModifications, ABiasOfMinusInfinityHidesItsKeyFromItsRowAndNoOther) {
  const Problem problem = modified("bias_heads causal_bottom_right");
  Inputs inputs = drawn_inputs(problem);
  std::ranges::fill(inputs[forward::bias].values(), 0.0F);
  inputs[forward::bias].at(0, 1, 3, 2) = minus_infinity;
  for (std::int64_t b = 0; b < 3; ++b) {
    for (std::int64_t h = 0; h < 4; ++h) {
      for (std::int64_t n = 0; n < 5; ++n) {
        for (std::int64_t j = 0; j < 6; ++j) {
          const bool is_hidden = h == 1 && n == 3 && j == 2;
          EXPECT_EQ(forward::sees(problem, inputs, b, h, n, j),
                    problem.sees(b, n, j) && !is_hidden);
        }
      }
    }
  }
}

TEST(ScoreModifications, APrefixIsSeenByAllQueriesAndTheRestAsTheMaskHasIt) {
  int seen_before = 0;
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    Problem problem = problem_from_string("b3 q9 k11 d8 causal_top_left lengths5");
    const Problem without = problem;
    problem.prefix_seed = seed;
    for (std::int64_t b = 0; b < 3; ++b) {
      const std::int64_t prefix = problem.prefix_len_of(b);
      EXPECT_GE(prefix, 0);
      EXPECT_LE(prefix, problem.key_len_of(b));
      EXPECT_EQ(without.prefix_len_of(b), 0);
      for (std::int64_t n = 0; n < problem.query_len_of(b); ++n) {
        for (std::int64_t j = 0; j < problem.key_len_of(b); ++j) {
          EXPECT_EQ(problem.sees(b, n, j), without.sees(b, n, j) || j < prefix);
          seen_before += problem.sees(b, n, j) && !without.sees(b, n, j) ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(seen_before, 100);
}

TEST(ScoreModifications, DocumentsCutAnEntryAndAQuerySeesThatOfItsDiagonal) {
  int hidden = 0;
  for (const Mask mask : {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right}) {
    for (std::uint64_t seed = 1; seed < 40; ++seed) {
      Problem problem = problem_from_string("b2 q9 k12 d8");
      problem.mask = mask;
      const Problem without = problem;
      problem.document_seed = seed;
      for (std::int64_t b = 0; b < 2; ++b) {
        for (std::int64_t n = 0; n < 9; ++n) {
          const std::int64_t diagonal =
              std::clamp<std::int64_t>(mask == Mask::causal_bottom_right ? n + 3 : n, 0, 11);
          for (std::int64_t j = 0; j < 12; ++j) {
            const bool is_same =
                problem.document_number(b, j) == problem.document_number(b, diagonal);
            EXPECT_EQ(is_same, problem.document_of(b, j) == problem.document_of(b, diagonal));
            EXPECT_EQ(problem.sees(b, n, j), without.sees(b, n, j) && is_same);
            hidden += is_same ? 0 : 1;
          }
        }
        for (std::int64_t j = 1; j < 12; ++j) {
          EXPECT_LE(problem.document_number(b, j - 1), problem.document_number(b, j));
        }
      }
    }
  }
  EXPECT_GT(hidden, 100);
}

// Random123's known answers for Philox4x32-10.
TEST(ScoreModifications, TheGeneratorOfDropoutIsPhilox) {
  const auto words = [](PhiloxWords counter, std::uint64_t key) {
    const PhiloxWords out = philox4x32(counter, key);
    return std::array{out.word[0], out.word[1], out.word[2], out.word[3]};
  };
  EXPECT_EQ(words({{0, 0, 0, 0}}, 0),
            (std::array{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U}));
  EXPECT_EQ(words({{~0U, ~0U, ~0U, ~0U}}, ~std::uint64_t{0}),
            (std::array{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU}));
  EXPECT_EQ(words({{0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}}, 0x299f31d0a4093822U),
            (std::array{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U}));
}

/// Share of the weights of a problem that dropout leaves.
double kept_share(const Problem& p) {
  double kept = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len; ++n) {
        for (std::int64_t j = 0; j < p.key_len; ++j) kept += keeps_weight(p, b, h, n, j) ? 1 : 0;
      }
    }
  }
  return kept / static_cast<double>(p.rows() * p.key_len);
}

// Of N independent weights a share is off by sqrt(p (1 - p) / N), and five times that once in two
// million.
TEST(ScoreModifications, DropoutDropsItsShareOfEachDimensionIndependently) {
  for (const float p : {0.1F, 0.5F}) {
    for (const std::int64_t seed : {0, 1, 977}) {
      Problem problem = problem_from_string("b4 h6 q40 k50 d8");
      problem.dropout = p;
      problem.dropout_seed = seed;
      const double n = static_cast<double>(problem.rows() * problem.key_len);
      const double sd = std::sqrt(static_cast<double>(p) * (1 - static_cast<double>(p)) / n);
      EXPECT_LE(std::abs(kept_share(problem) - (1 - static_cast<double>(p))), 5 * sd);
      // Neighbours along each dimension, other seeds and other offsets agree as often as
      // independent ones do.
      Problem other_seed = problem, other_offset = problem;
      other_seed.dropout_seed += std::int64_t{1} << 33;
      other_offset.dropout_offset += 1;
      double agree[6] = {}, pairs = 0;
      for (std::int64_t b = 0; b < 3; ++b) {
        for (std::int64_t h = 0; h < 5; ++h) {
          for (std::int64_t i = 0; i < 39; ++i) {
            for (std::int64_t j = 0; j < 49; ++j, ++pairs) {
              const bool kept = keeps_weight(problem, b, h, i, j);
              agree[0] += kept == keeps_weight(problem, b + 1, h, i, j) ? 1 : 0;
              agree[1] += kept == keeps_weight(problem, b, h + 1, i, j) ? 1 : 0;
              agree[2] += kept == keeps_weight(problem, b, h, i + 1, j) ? 1 : 0;
              agree[3] += kept == keeps_weight(problem, b, h, i, j + 1) ? 1 : 0;
              agree[4] += kept == keeps_weight(other_seed, b, h, i, j) ? 1 : 0;
              agree[5] += kept == keeps_weight(other_offset, b, h, i, j) ? 1 : 0;
            }
          }
        }
      }
      const double q = static_cast<double>(p) * p + (1.0 - p) * (1.0 - p);
      for (const double count : agree) {
        // Pairs overlap, so that the variance may be twice that of independent ones.
        EXPECT_LE(std::abs(count / pairs - q), 5 * std::sqrt(2 * q * (1 - q) / pairs)) << count;
      }
    }
  }
}

TEST(ScoreModifications, DropoutOfZeroDropsNothingAndOfOneAll) {
  Problem problem = modified("philox7");
  EXPECT_EQ(kept_share(problem), 1);
  problem.dropout = 1;
  EXPECT_EQ(kept_share(problem), 0);
}

// A longer batch, or more queries and keys, drop what they dropped before.
TEST(ScoreModifications, WhichWeightsFallDoesNotHangOnLengths) {
  Problem problem = modified("dropout0.5 philox7 offset3"), longer = problem;
  longer.query_len = 70;
  longer.key_len = 90;
  longer.batch = 9;
  for (std::int64_t n = 0; n < 5; ++n) {
    for (std::int64_t j = 0; j < 6; ++j) {
      EXPECT_EQ(keeps_weight(problem, 2, 3, n, j), keeps_weight(longer, 2, 3, n, j));
    }
  }
}

}  // namespace
}  // namespace attest
