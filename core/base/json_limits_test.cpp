#include "core/base/json_limits.hpp"

#include <gtest/gtest.h>

#include <cstring>
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
