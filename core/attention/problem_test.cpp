#include "core/attention/problem.hpp"

#include <gtest/gtest.h>

#include "core/attention/problem_field_test.hpp"
#include "core/base/error.hpp"

namespace attest {
namespace {

TEST(Problem, TextReadsBackAsTheSameProblem) {
  const Problem problem{.batch = 2,
                        .query_heads = 6,
                        .kv_heads = 2,
                        .query_len = 33,
                        .key_len = 65,
                        .head_dim = 80,
                        .mask = Mask::causal_bottom_right,
                        .element_type = ElementType::bf16,
                        .scale = 0.1F};
  EXPECT_EQ(problem_from_string(to_string(problem)), problem);
  Problem usual = problem;
  usual.scale = default_scale(usual.head_dim);
  EXPECT_EQ(problem_from_string(to_string(usual)), usual);
  Problem full = problem;
  full.mask = Mask::window_bottom_right;
  full.window = {12, 3};
  full.value_dim = 48;
  full.softcap = 30.5F;
  full.length_seed = 7;
  full.padding_seed = 18446744073709551615ULL;
  EXPECT_EQ(to_string(full),
            "b2 h6/2 q33 k65 d80 window_bottom_right bf16 left12 right3 dv48 scale0.1 softcap30.5 "
            "lengths7 padding18446744073709551615");
  EXPECT_EQ(problem_from_string(to_string(full)), full);
}

TEST(Problem, ExtrasThatMeanNothingAreRefused) {
  EXPECT_THROW((void)problem_from_string("n9 left4"), InvalidInput);
  EXPECT_THROW((void)problem_from_string("n9 window_top_left left-2"), InvalidInput);
  EXPECT_THROW((void)problem_from_string("n9 softcap-1"), InvalidInput);
  EXPECT_THROW((void)problem_from_string("n9 softcapnan"), InvalidInput);
  EXPECT_THROW((void)problem_from_string("b65536 n16777216 lengths1"), InvalidInput);
}

TEST(Problem, WhatIsLeftOutFollowsFromWhatIsThere) {
  const Problem problem = problem_from_string("b8,h12,n4096,d64");
  EXPECT_EQ(to_string(problem), "b8 h12/12 q4096 k4096 d64 none fp32");
  EXPECT_EQ(problem.scale, 0.125F);
  EXPECT_EQ(problem_from_string("q7").key_len, 7);
  EXPECT_EQ(problem_from_string("k0 q7").key_len, 0);
}

TEST(Problem, NoMoreKeysAreSharedThanThereAre) {
  EXPECT_EQ(problem_from_string("b2 q8 k64 shared64").shared_keys, 64);
  EXPECT_EQ(complaint_of([] { (void)problem_from_string("b2 q80 k64 shared65"); }),
            "problem field 'shared_keys' is 65; allowed: 0 to key_len, 64");
}

TEST(Problem, AFaultyTextIsRefusedWithTheFaultyPart) {
  for (const char* text : {"x8", "b", "h12/", "h/4", "d64.5", "fp8", "scale", "scalex", "b8b",
                           "causal", "q99999999999999999999"}) {
    try {
      (void)problem_from_string(text);
      ADD_FAILURE() << text << " was accepted";
    } catch (const InvalidInput& error) {
      EXPECT_NE(std::string(error.what()).find('\'' + std::string(text) + '\''), std::string::npos)
          << error.what();
    }
  }
  EXPECT_THROW((void)problem_from_string("d0"), InvalidInput);
  EXPECT_THROW((void)problem_from_string("h12/5"), InvalidInput);
  EXPECT_THROW((void)problem_from_string("scaleinf"), InvalidInput);
}

}  // namespace
}  // namespace attest
