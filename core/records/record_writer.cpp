#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/records/record.hpp"

namespace attest {
namespace {

// How every line that to_json(Record) makes begins.
constexpr std::string_view record_start = "{\"schema\":";

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view action, int error) {
  throw MachineError(fmt::format("{}: cannot {}: {}", path.string(), action,
                                 std::generic_category().message(error)));
}

/// Text behind the last newline of a file.
std::string unfinished_line(int file, off_t size, const std::filesystem::path& path) {
  std::string tail;
  char block[4096];
  for (off_t end = size; end > 0;) {
    const off_t begin =
        end > static_cast<off_t>(sizeof block) ? end - static_cast<off_t>(sizeof block) : 0;
    const ssize_t count = ::pread(file, block, static_cast<std::size_t>(end - begin), begin);
    if (count != end - begin) fail(path, "read its end", count < 0 ? errno : EIO);
    const std::string_view text(block, static_cast<std::size_t>(count));
    const std::size_t newline = text.rfind('\n');
    if (newline != std::string_view::npos) return std::string(text.substr(newline + 1)) + tail;
    tail.insert(0, text);
    end = begin;
  }
  return tail;
}

/// Makes the file end in a newline. A whole record only lacks it (and readers count that record);
/// an unfinished one is cut away. Nothing else may be: a user may have named some other file by
/// mistake.
void finish_last_line(int file, off_t size, const std::filesystem::path& path) {
  const std::string tail = unfinished_line(file, size, path);
  if (tail.empty()) return;
  if (!tail.starts_with(record_start.substr(0, tail.size())))
    throw InvalidInput(
        fmt::format("{}: ends in a line that is no record; give the path of a record "
                    "file or of a new file",
                    path.string()));
  if (is_json(tail)) {
    if (::write(file, "\n", 1) != 1) fail(path, "finish its last line", errno);
  } else if (::ftruncate(file, size - static_cast<off_t>(tail.size())) != 0) {
    fail(path, "remove its unfinished last record", errno);
  }
}

}  // namespace

RecordWriter::RecordWriter(std::filesystem::path path, std::int64_t sync_every)
    : path_(std::move(path)), sync_every_(sync_every) {
  if (path_.has_parent_path()) {
    std::error_code error;
    std::filesystem::create_directories(path_.parent_path(), error);
    if (error) fail(path_.parent_path(), "create the folder", error.value());
  }
  // Readable as well where we may, to look at the end; devices such as /dev/stdout may be
  // write-only.
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) fail(path_, "open for writing", errno);
  try {
    struct stat status {};
    if (::fstat(file_, &status) != 0) fail(path_, "inspect", errno);
    if (S_ISREG(status.st_mode)) {
      if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        throw MachineError(fmt::format("{}: another run is writing to it", path_.string()));
      // Asked again: the writer that held the lock a moment ago may have added to it.
      if (::fstat(file_, &status) != 0) fail(path_, "inspect", errno);
      finish_last_line(file_, status.st_size, path_);
    }
  } catch (...) {
    ::close(file_);
    throw;
  }
}

RecordWriter::~RecordWriter() {
  try {
    close();
  } catch (const std::exception& error) {
    std::fputs(fmt::format("attest: {}\n", error.what()).c_str(), stderr);
  }
}

void RecordWriter::write(const Record& record) {
  const std::string line = to_json(record) + '\n';
  const std::lock_guard lock(mutex_);
  if (file_ < 0) throw MachineError(fmt::format("{}: already closed", path_.string()));
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t count = ::write(file_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path_, "write a record", errno);
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  if (++unsynced_ >= sync_every_) sync();
}

void RecordWriter::close() {
  const std::lock_guard lock(mutex_);
  if (file_ < 0) return;
  const int file = std::exchange(file_, -1);
  int error = ::fsync(file) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
  if (::close(file) != 0 && error == 0) error = errno;
  if (error != 0) fail(path_, "finish writing", error);
}

void RecordWriter::sync() {
  // EINVAL: a pipe or a device, which has nothing to flush.
  if (::fsync(file_) != 0 && errno != EINVAL && errno != EROFS) fail(path_, "flush to disk", errno);
  unsynced_ = 0;
}

}  // namespace attest
