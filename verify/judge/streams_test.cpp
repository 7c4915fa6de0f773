#include "verify/judge/streams.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace attest {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::set<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    found.insert((*at)[1]);
  }
  return found;
}

// What two draws share goes together: the shift of K and the choice of the law that shifts it did.
TEST(Streams, EachIsOfOneLaw) {
  const fs::path verify = fs::path(ATTEST_SOURCE_DIR) / "verify";
  const std::set<std::string> named =
      matches(text_of(verify / "judge/streams.hpp"), std::regex("\n  (stream_[a-z_]+)[ ,]"));
  ASSERT_GT(named.size(), 30U);
  std::map<std::string, std::set<std::string>> users;
  for (const char* const folder : {"cases", "judge", "laws"}) {
    for (const fs::directory_entry& file : fs::directory_iterator(verify / folder)) {
      const std::string name = file.path().filename();
      if (!name.ends_with(".cpp") || name.ends_with("_test.cpp")) continue;
      const std::string text = text_of(file.path());
      for (const std::string& stream : matches(text, std::regex("\\b(stream_[a-z_]+)\\b"))) {
        if (named.contains(stream)) users[stream].insert(name);
      }
      // A number in place of a name is in no table.
      EXPECT_EQ(matches(text, std::regex("random_[a-z]+\\([^,;]*seed, ([0-9]+)")),
                std::set<std::string>{})
          << name;
    }
  }
  for (const std::string& stream : named) {
    EXPECT_EQ(users[stream].size(), 1U) << stream;
  }
}

}  // namespace
}  // namespace attest
