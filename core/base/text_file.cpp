#include "core/base/text_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view why) {
  constexpr std::size_t longest_path = 4096;
  throw InvalidInput(fmt::format("{}: {}", printable(path.string(), longest_path), why));
}

[[noreturn]] void refuse_unreadable(const std::filesystem::path& path, int error) {
  refuse(path, fmt::format("cannot be read: {}", std::generic_category().message(error)));
}

/// A pipe that was given has no path of its own: its link in /proc leads to no file.
bool is_given_pipe(const std::filesystem::path& path, const struct stat& status) {
  std::error_code has_no_path;
  (void)std::filesystem::canonical(path, has_no_path);
  return S_ISFIFO(status.st_mode) && has_no_path;
}

/// Closes in the end.
struct Descriptor {
  int number;
  ~Descriptor() { ::close(number); }
};

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  throw MachineError(
      fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(error)));
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path, std::size_t most_bytes) {
  // Looked at before it is opened: a named pipe waits there for a writer.
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) refuse_unreadable(path, errno);
  if (!S_ISREG(status.st_mode) && !is_given_pipe(path, status)) {
    refuse(path, "is no regular file, and no pipe from another command");
  }
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) refuse_unreadable(path, errno);
  std::string text;
  while (text.size() <= most_bytes) {
    char block[4096];
    const ssize_t got = ::read(file.number, block, sizeof block);
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_unreadable(path, errno);
    text.append(block, static_cast<std::size_t>(got));
  }
  refuse(path, fmt::format("has more than {} bytes", most_bytes));
}

void write_whole_file(const std::filesystem::path& path, std::string_view text) {
  std::error_code ignored;  // what it means for the file shows when that is opened
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  // A name of its own: several processes may write the same file at the same time.
  std::string unfinished = path.string() + ".XXXXXX";
  const int descriptor = ::mkostemp(unfinished.data(), O_CLOEXEC);
  if (descriptor < 0) fail(path, errno);
  int error = 0;
  {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(::fdopen(descriptor, "w"),
                                                               std::fclose);
    if (!file || ::fchmod(descriptor, 0644) != 0 ||
        std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
        std::fflush(file.get()) != 0 || ::fsync(descriptor) != 0) {
      error = errno;
    }
  }
  if (error == 0 && std::rename(unfinished.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(unfinished.c_str());
  fail(path, error);
}

}  // namespace attest
