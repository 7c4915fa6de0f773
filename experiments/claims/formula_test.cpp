#include "experiments/claims/formula.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.hpp"
#include "experiments/claims/functions.hpp"

namespace attest {
namespace {

double value(std::string_view formula) {
  FormulaScope scope;
  add_arithmetic(scope);
  add_models(scope);
  scope.values = {{"x", 3}, {"nan", NAN}};
  return evaluate_formula(formula, scope);
}

TEST(Formula, OperatorsBindAsInArithmetic) {
  EXPECT_EQ(value("1 + 2 * x ^ 2 - 4 / 2 / 2"), 18);
  EXPECT_EQ(value("-x ^ 2"), -9);
  EXPECT_EQ(value("2 ^ 3 ^ 2"), 512);
  EXPECT_EQ(value("(1 + 2) * -x"), -9);
  EXPECT_EQ(value("1 < 2 and not 2 < 1 or nan == nan"), 1);
  EXPECT_EQ(value("max(min(1, x), 2e-1)"), 1);
}

TEST(Formula, NoComparisonWithNanHolds) {
  for (const char* op : {"<", "<=", ">", ">=", "==", "!="}) {
    EXPECT_NE(value(fmt::format("nan {} 1", op)), 1) << op;
    EXPECT_NE(value(fmt::format("1 {} nan", op)), 1) << op;
  }
  EXPECT_EQ(value("rounds_to(nan, '1')"), 0);
  EXPECT_EQ(value("within(nan, 1, 100)"), 0);
}

TEST(Formula, AFigureAgreesWithAPrintedOneToItsLastDigit) {
  EXPECT_EQ(value("rounds_to(19.0349, '19.03')"), 1);
  EXPECT_EQ(value("rounds_to(19.0351, '19.03')"), 0);
  EXPECT_EQ(value("rounds_to(2.14e9, '2.1e9')"), 1);
  EXPECT_EQ(value("rounds_to(2.16e9, '2.1e9')"), 0);
  EXPECT_EQ(value("rounds_to(66.5, '67')"), 1);
}

TEST(Formula, WhatIsNoFormulaIsSaid) {
  for (const char* wrong :
       {"", "1 +", "(1", "1 2", "y", "f(1)", "abs()", "abs('a')", "'a'", "1 = 1", "flops(1)",
        "flops('nothing')", "gpu('h200', 'colour')", "2x"}) {
    EXPECT_THROW((void)value(wrong), InvalidInput) << wrong;
  }
  EXPECT_THROW((void)value(std::string(10000, '(')), InvalidInput);
}

}  // namespace
}  // namespace attest
