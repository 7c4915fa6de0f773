#include "experiments/study/language/expression.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "experiments/study/language/evaluate.hpp"
#include "experiments/study/language/vocabulary.hpp"

namespace attest {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Vocabulary vocabulary() {
  Vocabulary names;
  names.names["x"] = names.names["y"] = names.names["tile"] = {};
  names.names["bytes"] = {.dimension = Dimension::bytes};
  names.names["time"] = {.dimension = Dimension::time};
  names.names["order"] = {.kind = ValueType::Kind::text, .texts = {"fast", "slow"}};
  return names;
}

/// The expression, which must be right.
Expression expression(std::string_view text, Scope scope, ValueType::Kind wanted) {
  ParsedExpression parsed = parse_expression(text);
  EXPECT_TRUE(parsed.expression) << text << ": " << parsed.error.sentence;
  for (const ExpressionError& error : check(*parsed.expression, vocabulary(), scope, wanted)) {
    ADD_FAILURE() << text << " at " << error.at << ": " << error.sentence;
  }
  return *parsed.expression;
}

Row row(const std::map<std::string, Value>& values) {
  Row row{.value = [values](std::string_view name) {
    const auto found = values.find(std::string(name));
    return found == values.end() ? Value::missing(std::string(name)) : found->second;
  }};
  for (const auto& [name, value] : values) {
    if (name != "time" && name != "y") row.axes[name] = to_string(value);
  }
  return row;
}

double number(std::string_view text) {
  const Row at = row({{"x", Value::number(3)}, {"bytes", Value::number(2048)}});
  return evaluate(expression(text, Scope::values, ValueType::Kind::number), at).mid;
}

/// `holds`, `fails`, `may hold` or `missing`.
std::string verdict(const Value& value) {
  return value.is_surely_true()               ? "holds"
         : value.is_surely_false()            ? "fails"
         : value.kind == Value::Kind::missing ? "missing"
                                              : "may hold";
}
std::string truth(std::string_view text, const Row& at) {
  return verdict(evaluate(expression(text, Scope::values, ValueType::Kind::truth), at));
}
std::string truth(std::string_view text, const std::vector<Row>& rows, double tolerance = 0) {
  return verdict(
      evaluate(expression(text, Scope::results, ValueType::Kind::truth), rows, tolerance));
}

TEST(Expressions, Operators_bind_as_in_school_and_powers_from_the_right) {
  EXPECT_EQ(number("1 + 2 * 3 ^ 2"), 19);
  EXPECT_EQ(number("(1 + 2) * 3"), 9);
  EXPECT_EQ(number("7 - 2 - 1"), 4);
  EXPECT_EQ(number("24 / 4 / 2"), 3);
  EXPECT_EQ(number("2 ^ 3 ^ 2"), 512);
  EXPECT_EQ(number("-2 ^ 2"), -4);
  EXPECT_EQ(number("2 * -x"), -6);
}

TEST(Expressions, A_unit_scales_its_number) {
  EXPECT_EQ(number("bytes / 1KiB"), 2);
  EXPECT_EQ(number("2s / 1ms"), 2000);
  EXPECT_EQ(number("1min / 1s"), 60);
  EXPECT_EQ(number("50%"), 0.5);
}

TEST(Expressions, Not_binds_stronger_than_and_and_that_than_or) {
  const Row at = row({{"x", Value::number(3)}});
  EXPECT_EQ(truth("x == 3 or x == 4 and x == 5", at), "holds");
  EXPECT_EQ(truth("not x == 4 and x == 3", at), "holds");
  EXPECT_EQ(truth("not (x == 3 or x == 4)", at), "fails");
}

TEST(Expressions, A_bare_word_beside_a_text_is_a_text) {
  const Row at = row({{"order", Value::of_text("slow")}});
  EXPECT_EQ(truth("order == slow", at), "holds");
  EXPECT_EQ(truth("'fast' == order", at), "fails");
  EXPECT_EQ(truth("order != fast", at), "holds");
}

TEST(Expressions, A_comparison_holds_only_when_the_intervals_agree_about_it) {
  const Row at = row({{"x", Value::interval(1, 2, 3, "x")}, {"y", Value::interval(3, 4, 5, "y")}});
  EXPECT_EQ(truth("x < 3.5", at), "holds");
  EXPECT_EQ(truth("x > 3", at), "fails");
  EXPECT_EQ(truth("x < 2", at), "may hold");
  EXPECT_EQ(truth("x < y", at), "may hold");  // both may be 3
  EXPECT_EQ(truth("x <= y", at), "holds");
  EXPECT_EQ(truth("x == y", at), "may hold");
  EXPECT_EQ(truth("x == y + 1", at), "fails");
  EXPECT_EQ(truth("not x < 2", at), "may hold");
}

TEST(Expressions, What_is_not_known_or_no_number_never_holds) {
  const Row at = row({{"x", Value::interval(nan, nan, nan, "x")}});
  for (const char* text :
       {"x > 0", "x < 0", "x == x", "x != x", "not x > 0", "y == 1", "1 / (x - x) > 0"}) {
    EXPECT_EQ(truth(text, at), "missing") << text;
  }
  EXPECT_EQ(truth("1 / (y - y) > 0", row({{"y", Value::number(1)}})), "missing");
  // One side decides alone.
  EXPECT_EQ(truth("x > 0 or 1 < 2", at), "holds");
  EXPECT_EQ(truth("x > 0 and 1 > 2", at), "fails");
}

std::vector<Row> tiles() {
  std::vector<Row> rows;
  const auto add = [&](double tile, const char* order, double low, double mid, double high) {
    rows.push_back(row({{"tile", Value::number(tile)},
                        {"order", Value::of_text(order)},
                        {"time", Value::interval(low, mid, high, "time")}}));
  };
  add(32, "fast", 9, 10, 11);
  add(64, "fast", 4, 5, 6);
  add(32, "slow", 18, 20, 22);
  add(64, "slow", 14, 15, 16);
  return rows;
}

TEST(Expressions, Functions_over_points_take_the_points_of_their_condition) {
  EXPECT_EQ(truth("median(time) == 12.5ms", tiles(), 1), "holds");
  EXPECT_EQ(truth("min(time where order == slow) == 15ms", tiles()), "may hold");
  EXPECT_EQ(truth("min(time where order == slow) > 13ms", tiles()), "holds");
  EXPECT_EQ(truth("count(where tile == 64) == 2", tiles()), "holds");
  EXPECT_EQ(truth("all(time > 3ms) and any(time > 17ms)", tiles()), "holds");
  EXPECT_EQ(truth("all(time > 5ms)", tiles()), "may hold");
  EXPECT_EQ(truth("all(time > 7ms)", tiles()), "fails");
  EXPECT_EQ(truth("median(time where tile == 128) > 0ms", tiles()), "missing");
  EXPECT_EQ(truth("all(time > 0ms where tile == 128)", tiles()), "missing");
}

TEST(Expressions, A_ratio_pairs_points_that_agree_in_all_other_axes) {
  // 20 / 10 and 15 / 5, geometric mean sqrt(6); pairs at their limits 18 / 11, 14 / 6 and 22 / 9,
  // 16 / 4.
  EXPECT_EQ(truth("ratio(time, order, slow, fast) > 1.95", tiles()), "holds");
  EXPECT_EQ(truth("ratio(time, order, slow, fast) < 3.2", tiles()), "holds");
  EXPECT_EQ(truth("ratio(time, order, slow, fast) < 3.1", tiles()), "may hold");
  EXPECT_EQ(truth("ratio(time, tile, 32, 128) > 0", tiles()), "missing");
  std::vector<Row> unpaired{tiles()[0], tiles()[3]};
  EXPECT_EQ(truth("ratio(time, order, slow, fast) > 0", unpaired), "missing");
}

// Contiguous keys have no order of pages: nothing was said of what pages cost.
TEST(Expressions, A_ratio_pairs_points_of_which_one_lacks_an_axis) {
  const auto point = [](double tile, std::map<std::string, Value> values, double time) {
    values["tile"] = Value::number(tile);
    values["time"] = Value::number(time);
    return row(values);
  };
  const std::vector<Row> rows{point(32, {}, 10), point(64, {{"order", Value::of_text("fast")}}, 20),
                              point(64, {{"order", Value::of_text("slow")}}, 80)};
  EXPECT_EQ(truth("ratio(time, tile, 64, 32) > 3.99", rows), "holds");
  EXPECT_EQ(truth("ratio(time, tile, 64, 32) < 4.01", rows), "holds");
  EXPECT_EQ(truth("ratio(time, tile, 64, 32 where order == slow) > 0", rows), "missing");
  EXPECT_EQ(truth("ratio(time, order, slow, fast) > 3.99", rows), "holds");
}

TEST(Expressions, A_slope_is_that_of_least_squares_with_the_limits_that_intervals_leave) {
  std::vector<Row> rows;
  for (const double x : {1.0, 2.0, 4.0, 8.0}) {
    rows.push_back(row(
        {{"x", Value::number(x)}, {"y", Value::interval(0.99 * x * x, x * x, 1.01 * x * x, "y")}}));
  }
  EXPECT_EQ(truth("slope(log(y), log(x)) > 1.98 and slope(log(y), log(x)) < 2.02", rows), "holds");
  EXPECT_EQ(truth("slope(log(y), log(x)) > 2", rows), "may hold");
  rows.resize(1);
  EXPECT_EQ(truth("slope(y, x) > 0", rows), "missing");
}

TEST(Expressions, The_best_point_is_unsure_when_another_one_may_be_as_good) {
  EXPECT_EQ(truth("at_min(time, tile) == 64", tiles()), "holds");
  EXPECT_EQ(truth("at_max(time, order) == slow", tiles()), "holds");
  EXPECT_EQ(truth("at_min(time, order where tile == 32) == fast", tiles()), "holds");
  std::vector<Row> close = tiles();
  close.push_back(row({{"tile", Value::number(128)},
                       {"order", Value::of_text("slow")},
                       {"time", Value::interval(5, 6, 7, "time")}}));
  EXPECT_EQ(truth("at_min(time, tile) == 64", close), "may hold");
  EXPECT_EQ(truth("at_min(time, order) == fast", close), "may hold");
  EXPECT_EQ(truth("at_min(time, tile) == 32", close), "fails");
}

TEST(Expressions, Tolerance_is_in_favour_of_orders_and_against_difference) {
  const std::vector<Row> rows{row({{"y", Value::number(98)}})};
  EXPECT_EQ(truth("min(y) >= 100", rows), "fails");
  EXPECT_EQ(truth("min(y) >= 100", rows, 0.02), "holds");
  EXPECT_EQ(truth("min(y) > 100", rows, 0.03), "holds");
  EXPECT_EQ(truth("min(y) == 100", rows, 0.02), "holds");
  EXPECT_EQ(truth("min(y) != 100", rows, 0.02), "fails");
  EXPECT_EQ(truth("all(y >= 100)", rows, 0.02), "holds");
  EXPECT_EQ(truth("count(where y >= 100) == 1", rows, 0.02), "fails");  // conditions are exact
}

}  // namespace
}  // namespace attest
