#include "core/problem.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

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
}

TEST(Problem, WhatIsLeftOutFollowsFromWhatIsThere) {
  const Problem problem = problem_from_string("b8,h12,n4096,d64");
  EXPECT_EQ(to_string(problem), "b8 h12/12 q4096 k4096 d64 none fp32");
  EXPECT_EQ(problem.scale, 0.125F);
  EXPECT_EQ(problem_from_string("q7").key_len, 7);
  EXPECT_EQ(problem_from_string("k0 q7").key_len, 0);
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
