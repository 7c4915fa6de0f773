#include "core/base/json.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/inputs/safetensors.hpp"
#include "core/records/case.hpp"

namespace attest {
namespace {

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') +
         std::string(static_cast<std::size_t>(depth), ']');
}

TEST(JsonLimits, SixtyFourLevelsAreAllowedAndOneMoreIsNot) {
  EXPECT_NO_THROW(require_shallow_json(nested(64), "here"));
  EXPECT_NO_THROW(require_shallow_json(nested(64) + nested(64), "here"));
  EXPECT_THROW(require_shallow_json(nested(65), "here"), InvalidInput);
}

TEST(JsonLimits, BracketsInsideStringsDoNotCount) {
  EXPECT_NO_THROW(
      require_shallow_json('"' + std::string(100, '[') + "\\\"" + std::string(100, '{') + '"', ""));
  EXPECT_THROW(require_shallow_json("\"\\\\\"" + nested(65), ""), InvalidInput);
}

TEST(JsonLimits, AKeyTwiceInOneObjectIsBadInputAndOnceInEachOfTwoIsNot) {
  EXPECT_NO_THROW(
      require_distinct_keys(R"({"a": {"a": 1, "b": 2}, "b": [{"a": 1}, {"a": 2}]})", ""));
  EXPECT_NO_THROW(require_distinct_keys("no JSON", ""));
  for (const char* text : {R"({"a": 1, "a": 1})", R"({"b": [1, {"c": {}, "a": 1, "a": 2}]})",
                           R"({"a": {"b": 1}, "\u0061": 2})", R"({"a": 1, "a": 1)"}) {
    try {
      require_distinct_keys(text, "here");
      ADD_FAILURE() << text;
    } catch (const InvalidInput& error) {
      EXPECT_STREQ(error.what(), "here: key 'a' is given twice in one object");
    }
  }
}

TEST(JsonNumbers, EveryDoubleSurvivesAndWhatIsNoNumberIsRefused) {
  for (const double value : {0.1, -0.0, 5e-324, 1e308, HUGE_VAL, -HUGE_VAL}) {
    EXPECT_EQ(number_from_json(parse_json(number_json(value).dump())), value);
  }
  EXPECT_TRUE(std::isnan(number_from_json(number_json(std::nan("")))));
  for (const char* text : {"null", "true", "\"1\"", "\"NaN\"", "[1]", "{}"}) {
    EXPECT_THROW((void)number_from_json(parse_json(text)), InvalidInput) << text;
  }
}

/// Complaint about reading the key `x` of `{"x": value}`; empty: there is none.
template <typename Read>
std::string complaint_about(const char* value, const Read& read) {
  const Json json = parse_json(fmt::format(R"({{"x": {}}})", value));
  try {
    JsonObject object(json, "here");
    read(object);
    object.finish();
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(JsonObject, GivesAValueOfTheTypeAskedForAndSaysWhatIsAllowedForAnother) {
  constexpr std::array<std::string_view, 2> names{"red", "blue"};
  const auto text = [](JsonObject& object) { (void)object.text("x"); };
  const auto boolean = [](JsonObject& object) { (void)object.boolean("x"); };
  const auto seed = [](JsonObject& object) { (void)object.seed("x"); };
  const auto finite = [](JsonObject& object) { (void)object.finite("x"); };
  const auto number = [](JsonObject& object) { (void)object.number("x"); };
  const auto choice = [&](JsonObject& object) { EXPECT_EQ(object.choice("x", names), 1U); };
  EXPECT_EQ(complaint_about(R"("a")", text), "");
  EXPECT_EQ(complaint_about("null", text), "here: 'x' is null; allowed: a string");
  EXPECT_EQ(complaint_about("false", boolean), "");
  EXPECT_EQ(complaint_about("0", boolean), "here: 'x' is 0; allowed: true, false");
  EXPECT_EQ(complaint_about("18446744073709551615", seed), "");
  EXPECT_EQ(complaint_about("1.0", seed),
            "here: 'x' is 1.0; allowed: an integer from 0 to 2^64 - 1");
  EXPECT_EQ(complaint_about("-2", finite), "");
  EXPECT_EQ(complaint_about(R"("nan")", finite), "here: 'x' is \"nan\"; allowed: a finite number");
  EXPECT_EQ(complaint_about(R"("-inf")", number), "");
  EXPECT_EQ(complaint_about(R"("many")", number),
            R"(here: 'x' is "many"; allowed: a number, "nan", "inf" or "-inf")");
  EXPECT_EQ(complaint_about(R"("blue")", choice), "");
  EXPECT_EQ(complaint_about(R"("green")", choice), R"(here: 'x' is "green"; allowed: red, blue)");
}

TEST(JsonObject, TakesIntegersOfTheirRangeAlone) {
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min(),
                         highest = std::numeric_limits<std::int64_t>::max();
  const auto small = [](JsonObject& object) { (void)object.integer("x", -1, 5); };
  const auto any = [=](JsonObject& object) { (void)object.integer("x", lowest, highest); };
  for (const char* value : {"-1", "0", "5"}) EXPECT_EQ(complaint_about(value, small), "") << value;
  for (const char* value : {"-2", "6", "18446744073709551615", "9223372036854775808", "1e300",
                            "1.5", "\"1\"", "null"}) {
    EXPECT_TRUE(complaint_about(value, small).ends_with("; allowed: an integer from -1 to 5"))
        << value;
  }
  EXPECT_EQ(complaint_about("-9223372036854775808", any), "");
  EXPECT_EQ(complaint_about("9223372036854775807", any), "");
  EXPECT_NE(complaint_about("9223372036854775808", any), "");
  EXPECT_NE(complaint_about("18446744073709551615", any), "");
}

TEST(JsonObject, NamesAKeyThatIsMissingAndOneThatNobodyAskedFor) {
  EXPECT_EQ(complaint_about("1", [](JsonObject& object) { (void)object.at("y"); }),
            "here: key 'y' is missing; keys that are there: x");
  EXPECT_EQ(complaint_about("1", [](JsonObject& object) { EXPECT_FALSE(object.has("y")); }),
            "here: key 'x' is unknown; allowed: y");
  EXPECT_EQ(complaint_about("1", [](JsonObject& object) { EXPECT_TRUE(object.has("x")); }), "");
  EXPECT_THROW(JsonObject(parse_json("[1]"), "here"), InvalidInput);
}

TEST(JsonLimits, ACaseWithAKeyTwiceIsBadInput) {
  std::string text = to_json(Case{.kernel = "k", .problem = {.head_dim = 8}});
  EXPECT_NO_THROW((void)case_from_json(text, "case"));
  text.insert(1, R"("schedule_seed": 7, )");
  EXPECT_THROW((void)case_from_json(text, "case"), InvalidInput);
}

TEST(JsonLimits, AVeryDeepFileIsBadInputAndNoStackOverflow) {
  const std::string deep = "{\"kernel\": " + nested(1'000'000) + "}";
  EXPECT_THROW((void)case_from_json(deep, "deep.json"), InvalidInput);
  std::string header = "{\"q\": " + nested(1'000'000) + "}";
  std::vector<std::byte> bytes(8 + header.size());
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(header.size() >> (8 * i));
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  EXPECT_THROW((void)Safetensors::from_bytes(std::move(bytes), "deep.safetensors"), InvalidInput);
}

}  // namespace
}  // namespace attest
