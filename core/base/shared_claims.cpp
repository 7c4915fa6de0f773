#include "core/base/shared_claims.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"

namespace attest {
namespace {

constexpr auto heartbeat = std::chrono::seconds(1);

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view action) {
  const std::string why = std::generic_category().message(errno);
  throw MachineError(fmt::format("{}: cannot {}: {}", path.string(), action, why));
}

std::chrono::nanoseconds last_touch(const struct stat& status) {
  return std::chrono::seconds(status.st_mtim.tv_sec) +
         std::chrono::nanoseconds(status.st_mtim.tv_nsec);
}

}  // namespace

SharedClaims::SharedClaims(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::error_code ignored;  // what it means shows when the file is opened
  std::filesystem::create_directories(folder_, ignored);
  const std::filesystem::path path = folder_ / "clock";
  clock_ = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  if (clock_ < 0) fail(path, "be written");
  heart_ = std::jthread([this](const std::stop_token& end) { touch_until(end); });
}

SharedClaims::~SharedClaims() {
  heart_.request_stop();
  heart_.join();
  while (!held_.empty()) give_back(held_.begin()->first);
  ::close(clock_);
}

bool SharedClaims::take(const std::string& name) {
  for (int owner = 1;; ++owner) {
    const std::filesystem::path path = path_of(name, owner);
    const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    if (file >= 0) {
      const std::scoped_lock lock(mutex_);
      held_.emplace(name, Held{path, file});
      return true;
    }
    if (errno != EEXIST) fail(path, "be created");
    if (!is_dead(path)) return false;
  }
}

void SharedClaims::give_back(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  const auto at = held_.find(name);
  if (at == held_.end()) return;
  ::unlink(at->second.path.c_str());
  ::close(at->second.file);
  held_.erase(at);
}

bool SharedClaims::is_held(const std::string& name) {
  for (int owner = 1;; ++owner) {
    const std::filesystem::path path = path_of(name, owner);
    if (::access(path.c_str(), F_OK) != 0) return false;
    if (!is_dead(path)) return true;
  }
}

std::filesystem::path SharedClaims::path_of(const std::string& name, int owner) const {
  return folder_ / fmt::format("{}.claim{}", name, owner);
}

bool SharedClaims::is_dead(const std::filesystem::path& path) const {
  struct stat claim {
  }, now{};
  if (::stat(path.c_str(), &claim) != 0) return false;  // was given back just now
  if (::futimens(clock_, nullptr) != 0 || ::fstat(clock_, &now) != 0) fail(folder_, "be touched");
  return last_touch(now) - last_touch(claim) > dead_after;
}

void SharedClaims::touch_until(const std::stop_token& end) {
  std::unique_lock lock(mutex_);
  while (!woken_.wait_for(lock, end, heartbeat, [&] { return end.stop_requested(); })) {
    for (const auto& [name, held] : held_) (void)::futimens(held.file, nullptr);
  }
}

}  // namespace attest
