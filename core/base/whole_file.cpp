#include "core/base/whole_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>

#include "core/base/error.hpp"

namespace attest {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  throw MachineError(
      fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(error)));
}

}  // namespace

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
