#include "core/whole_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "core/error.hpp"

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
  std::filesystem::path unfinished = path;
  unfinished += ".tmp";
  {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(unfinished.c_str(), "we"),
                                                               std::fclose);
    if (!file) fail(unfinished, errno);
    if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
        std::fflush(file.get()) != 0 || fsync(fileno(file.get())) != 0) {
      fail(unfinished, errno);
    }
  }
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) fail(path, errno);
}

}  // namespace attest
