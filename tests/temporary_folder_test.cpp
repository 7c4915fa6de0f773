#include "core/base/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/layering.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// True if the text of a test asks for the machine's folder of temporary files, which all have.
bool shares_a_folder(std::string_view text) {
  // Written in two parts, or this file would be found.
  for (const std::string name : {"TempDir", "temp_directory_path"}) {
    if (text.find(name + "(") != std::string_view::npos) return true;
  }
  return false;
}

TEST(TemporaryFolder, IsNobodyElsesAndIsGoneAtTheEnd) {
  fs::path path;
  {
    const TemporaryFolder mine;
    const TemporaryFolder yours;
    EXPECT_NE(mine.path(), yours.path());
    path = mine.path();
    EXPECT_TRUE(fs::is_empty(path));
    fs::create_directories(path / "deep");
    std::ofstream(path / "deep" / "file") << "text";
  }
  EXPECT_FALSE(fs::exists(path));
}

// Tests of one fixture, at the same time in two processes, once deleted each other's files.
TEST(TemporaryFolder, IsWhereEveryTestWrites) {
  const fs::path root = ATTEST_SOURCE_DIR;
  EXPECT_TRUE(shares_a_folder(std::string("fs::path(testing::TempDir") + "()) / \"name\""));
  int files = 0;
  for (const std::string& file : source_files(root)) {
    if (file == "core/base/temporary_folder.hpp" || file.ends_with(".py")) continue;
    std::ifstream stream(root / file);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    EXPECT_FALSE(shares_a_folder(text)) << file << ": use TemporaryFolder";
    ++files;
  }
  EXPECT_GT(files, 100);
}

}  // namespace
}  // namespace attest
