#include "core/base/text_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/temporary_folder.hpp"

namespace attest {
namespace {

constexpr std::size_t limit = 100;

/// Complaint about the path, without the path.
std::string why_not_read(const std::filesystem::path& path, std::size_t most_bytes = limit) {
  try {
    (void)read_text_file(path, most_bytes);
  } catch (const InvalidInput& error) {
    return std::string(error.what()).substr(path.string().size());
  }
  return "";
}

TEST(TextFile, a_file_is_read_up_to_the_limit_and_not_beyond) {
  const TemporaryFolder folder;
  const std::string text(limit, 'x');
  std::ofstream(folder / "text") << text;
  EXPECT_EQ(read_text_file(folder / "text", limit), text);
  EXPECT_EQ(why_not_read(folder / "text", limit - 1), ": has more than 99 bytes");
}

TEST(TextFile, a_pipe_that_was_given_is_read_to_its_end) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "piped", 5), 5);
  ::close(ends[1]);
  EXPECT_EQ(read_text_file("/proc/self/fd/" + std::to_string(ends[0]), limit), "piped");
  ::close(ends[0]);
}

TEST(TextFile, what_may_never_end_and_what_cannot_be_read_is_refused_with_the_reason) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const std::string is_no_file = ": is no regular file, and no pipe from another command";
  EXPECT_EQ(why_not_read(folder / "pipe"), is_no_file);
  EXPECT_EQ(why_not_read("/dev/zero"), is_no_file);
  EXPECT_EQ(why_not_read(folder), is_no_file);
  EXPECT_EQ(why_not_read(folder / "none"), ": cannot be read: No such file or directory");
  EXPECT_EQ(why_not_read("/proc/self/mem"), ": cannot be read: Input/output error");
}

}  // namespace

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
