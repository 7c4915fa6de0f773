#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/temporary_folder.hpp"
#include "core/base/text_file.hpp"

namespace attest {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(WholeFile, AnotherTextTakesThePlaceOfTheFirstAndNothingElseIsLeft) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "new" / "file.json";
  write_whole_file(path, "the first, longer text");
  write_whole_file(path, "second");
  EXPECT_EQ(text_of(path), "second");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path.parent_path()), {}), 1);
}

TEST(WholeFile, WritersAtTheSameTimeDoNotDisturbEachOther) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "file.json";
  {
    std::vector<std::jthread> writers;
    for (int i = 0; i < 8; ++i) {
      writers.emplace_back([&] {
        for (int j = 0; j < 20; ++j) write_whole_file(path, "the same text");
      });
    }
  }
  EXPECT_EQ(text_of(path), "the same text");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(WholeFile, APlaceThatCannotBeWrittenIsNamedWithTheReason) {
  try {
    write_whole_file("/dev/null/file.json", "text");
    FAIL() << "accepted";
  } catch (const MachineError& error) {
    EXPECT_NE(std::string(error.what()).find("/dev/null/file.json"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("Not a directory"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace attest
