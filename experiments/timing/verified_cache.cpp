#include "experiments/timing/verified_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/json.hpp"

namespace attest {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, int error) {
  throw MachineError(fmt::format("{}: cannot be written: {}", file.string(),
                                 std::generic_category().message(error)));
}

/// Closes, and with it unlocks, in the end.
struct OpenFile {
  int fd;
  ~OpenFile() { ::close(fd); }
};

}  // namespace

VerifiedCache::VerifiedCache(std::filesystem::path file, std::string build, std::string device)
    : file_(std::move(file)), build_(std::move(build)), device_(std::move(device)) {
  std::ifstream stream(file_);
  for (std::string line; std::getline(stream, line);) {
    if (!is_json(line)) continue;
    const Json json = parse_json(line);
    if (!json.is_object() || json.value("passed", Json()) != Json(true)) continue;
    const auto is = [&](const char* name, const std::string& want) {
      return json.value(name, Json()) == Json(want);
    };
    const Json key = json.value("case", Json());
    if (is("build", build_) && is("device", device_) && key.is_string()) {
      passed_.insert(key.get<std::string>());
    }
  }
}

std::string VerifiedCache::key(const KernelInfo& kernel, const Case& c) {
  return fmt::format("{} {}", name_of(kernel.executor), to_string(c));
}

bool VerifiedCache::holds(const KernelInfo& kernel, const Case& c) const {
  const std::scoped_lock lock(mutex_);
  return passed_.contains(key(kernel, c));
}

void VerifiedCache::add(const KernelInfo& kernel, const Case& c) {
  const std::scoped_lock lock(mutex_);
  const std::string text = key(kernel, c);
  if (!passed_.insert(text).second || file_.empty()) return;
  const Json json{{"build", build_}, {"device", device_}, {"case", text}, {"passed", true}};
  append(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void VerifiedCache::append(const std::string& line) const {
  std::error_code ignored;  // what it means for the file shows when that is opened
  if (file_.has_parent_path()) std::filesystem::create_directories(file_.parent_path(), ignored);
  const OpenFile file{::open(file_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)};
  if (file.fd < 0 || ::flock(file.fd, LOCK_EX) != 0) fail(file_, errno);
  struct stat status {};
  char last = '\n';
  if (::fstat(file.fd, &status) != 0) fail(file_, errno);
  if (status.st_size > 0 && ::pread(file.fd, &last, 1, status.st_size - 1) != 1) fail(file_, errno);
  // A writer that was killed in its line must not spoil ours.
  const std::string text = last == '\n' ? line : "\n" + line;
  if (::write(file.fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    fail(file_, errno);
  }
}

}  // namespace attest
