#include <gtest/gtest.h>

#include <cstring>

#include "core/attention/problem_field_test.hpp"
#include "plugin/arguments.hpp"

namespace attest {
namespace {

bool is_same(const AttestProblem& a, const AttestProblem& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

TEST(PluginProblem, EveryFieldOfAProblemReachesTheKernel) {
  for (const ProblemField& field : problem_fields()) {
    if (field.name == "operation") continue;  // the kernel named it
    EXPECT_FALSE(
        is_same(to_c(problem_having(field), nullptr), to_c(problem_with_other(field), nullptr)))
        << field.name;
  }
}

TEST(PluginProblem, FieldsStandWhereTheHeaderSays) {
  int here = 0;
  const AttestProblem p =
      to_c(problem_from_string("b3 h6/2 q9 k7 d16 window_bottom_right bf16 left4 right2 dv32 "
                               "scale0.5 softcap30 lengths7 padding9"),
           &here);
  EXPECT_EQ(p.size, sizeof p);
  EXPECT_TRUE(attest_is(p.element_type, ATTEST_BFLOAT, 16));
  EXPECT_EQ(p.mask, ATTEST_WINDOW_BOTTOM_RIGHT);
  EXPECT_EQ(p.scale, 0.5F);
  EXPECT_EQ(p.batch, 3);
  EXPECT_EQ(p.query_heads, 6);
  EXPECT_EQ(p.kv_heads, 2);
  EXPECT_EQ(p.query_len, 9);
  EXPECT_EQ(p.key_len, 7);
  EXPECT_EQ(p.head_dim, 16);
  EXPECT_EQ(p.value_dim, 32);
  EXPECT_EQ(p.window_left, 4);
  EXPECT_EQ(p.window_right, 2);
  EXPECT_EQ(p.softcap, 30.0F);
  EXPECT_EQ(p.has_lengths, 1U);
  EXPECT_EQ(p.has_padding, 1U);
  EXPECT_EQ(p.user_data, &here);
}

TEST(PluginProblem, WithoutAValueDimTheHeadDimIsTold) {
  EXPECT_EQ(to_c(Problem{.head_dim = 24}, nullptr).value_dim, 24);
}

TEST(PluginFormat, EveryFormatHasTheNumbersOfDlpack) {
  EXPECT_TRUE(attest_is(to_c(ElementType::fp32), 2, 32));
  EXPECT_TRUE(attest_is(to_c(ElementType::fp16), 2, 16));
  EXPECT_TRUE(attest_is(to_c(ElementType::bf16), 4, 16));
  for (const ElementType type : all_element_types()) {
    EXPECT_EQ(to_c(type).bits, 8 * format_of(type).size_bytes);
    EXPECT_EQ(element_type_of(to_c(type)), type);
  }
  EXPECT_FALSE(element_type_of(AttestFormat ATTEST_TF32));
  EXPECT_FALSE(element_type_of({ATTEST_FLOAT, 32, 4}));
}

}  // namespace
}  // namespace attest
