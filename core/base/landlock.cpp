#include "core/base/landlock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/base/error.hpp"

namespace attest {
namespace {

// The interface of Linux 6.12, version 6 [linux/landlock.h], which older headers have not.
struct RulesetAttributes {
  std::uint64_t files, net, scoped;
};
struct [[gnu::packed]] PathAttributes {
  std::uint64_t allowed;
  std::int32_t parent;
};
constexpr std::uint32_t ask_version = 1;
constexpr int path_beneath = 1;
/// What a child is handed takes the numbers below.
constexpr int beyond_handed_over = 64;

namespace rights {
constexpr std::uint64_t execute = 1 << 0, write_file = 1 << 1, read_file = 1 << 2,
                        read_folder = 1 << 3, refer = 1 << 13, truncate = 1 << 14,
                        device_ioctl = 1 << 15;
/// Of version 1: those up to reading folders, and making and deleting of every kind of file.
constexpr std::uint64_t first = (1 << 13) - 1;
constexpr std::uint64_t special_files = 1 << 6 | 1 << 11;  // character and block devices
constexpr std::uint64_t of_a_file = execute | write_file | read_file | truncate | device_ioctl;
constexpr std::uint64_t bind_and_connect = 3, abstract_sockets_and_signals = 3;
}  // namespace rights

std::uint64_t known_rights(int version) {
  return rights::first | (version >= 2 ? rights::refer : 0) |
         (version >= 3 ? rights::truncate : 0) | (version >= 5 ? rights::device_ioctl : 0);
}

[[noreturn]] void no_box(const std::string& what) {
  throw MachineError(fmt::format("no box for a process: {}: {}", what, strerror(errno)));
}

void add_rule(int ruleset, const std::string& path, std::uint64_t allowed) {
  const OwnedFd file(open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) return;  // it is not there
  if (!S_ISDIR(status.st_mode)) allowed &= rights::of_a_file;
  const PathAttributes rule{.allowed = allowed, .parent = file.get()};
  if (syscall(SYS_landlock_add_rule, ruleset, path_beneath, &rule, 0) != 0) {
    no_box("landlock_add_rule " + path);
  }
}

}  // namespace

int landlock_version() {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, ask_version);
  return version > 0 ? static_cast<int>(version) : 0;
}

Landlock::Landlock(const FileRules& rules) {
  const int version = landlock_version();
  if (version == 0) return;
  const std::uint64_t known = known_rights(version);
  const RulesetAttributes handled{
      .files = known,
      .net = version >= 4 ? rights::bind_and_connect : 0,
      .scoped = version >= 6 ? rights::abstract_sockets_and_signals : 0};
  const std::size_t size = sizeof(std::uint64_t) * (version >= 6 ? 3 : version >= 4 ? 2 : 1);
  const OwnedFd low(static_cast<int>(syscall(SYS_landlock_create_ruleset, &handled, size, 0)));
  if (low.get() < 0) no_box("landlock_create_ruleset");
  rules_.reset(fcntl(low.get(), F_DUPFD_CLOEXEC, beyond_handed_over));
  if (rules_.get() < 0) no_box("fcntl");
  for (const std::string& path : rules.readable) {
    add_rule(rules_.get(), path, rights::execute | rights::read_file | rights::read_folder);
  }
  for (const std::string& path : rules.writable)
    add_rule(rules_.get(), path, known & ~rights::special_files);
}

bool Landlock::enter() const noexcept {
  return rules_.get() < 0 || syscall(SYS_landlock_restrict_self, rules_.get(), 0) == 0;
}

}  // namespace attest
