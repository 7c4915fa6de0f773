#include "core/base/box.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/seccomp_filter.hpp"

namespace attest {
namespace {

/// Libraries and tables of the system, and what tells of the machine. /proc holds nothing of
/// processes outside that Landlock lets be read but their names and command lines.
constexpr const char* of_the_system[] = {
    "/usr", "/bin",  "/sbin",     "/lib",      "/lib64",      "/etc",        "/opt",
    "/sys", "/proc", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"};
constexpr rlim_t most_processes = 4096;       // of a user together; root has no limit
constexpr rlim_t longest_file = 1UL << 30;    // bytes
constexpr rlim_t locked_memory = 64UL << 10;  // bytes
constexpr int enough_landlock = 3;            // before it files can be cut short

/// Where rubbish goes, and what a subject computes on.
std::vector<std::string> gpu_devices() {
  std::vector<std::string> found{"/dev/null"};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    if (entry.path().filename().string().starts_with("nvidia")) found.push_back(entry.path());
  }
  return found;
}

FileRules files_of(const BoxRules& rules) {
  FileRules files{.readable = rules.readable, .writable = gpu_devices()};
  files.readable.insert(files.readable.end(), std::begin(of_the_system), std::end(of_the_system));
  if (!rules.scratch.empty()) files.writable.push_back(rules.scratch);
  return files;
}

bool lower(__rlimit_resource what, rlim_t most) noexcept {
  rlimit now{};
  if (getrlimit(what, &now) != 0) return false;
  const rlim_t value = now.rlim_max == RLIM_INFINITY || most < now.rlim_max ? most : now.rlim_max;
  now = {.rlim_cur = value, .rlim_max = value};
  return setrlimit(what, &now) == 0;
}

/// Of root alone, who has capabilities: with CAP_PERFMON Linux 6.13 shows the environment and the
/// map of memory of any process, with others more. Files stay with Landlock. Exec gives none back
/// [capabilities(7), prctl(2) on no_new_privs].
bool drop_capabilities() noexcept {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) return false;
  constexpr std::uint32_t kept = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
  sets[0] = {.effective = sets[0].effective & kept,
             .permitted = sets[0].permitted & kept,
             .inheritable = 0};
  sets[1] = {};
  return syscall(SYS_capset, &header, sets.data()) == 0;
}

std::string release_of_linux() {
  utsname system{};
  (void)uname(&system);
  const std::string_view release = system.release;
  return fmt::format("Linux {}", release.substr(0, release.find_first_not_of("0123456789.")));
}

}  // namespace

Box::Box(BoxRules rules) : rules_(std::move(rules)), files_(files_of(rules_)) {
  const char* const path = std::getenv("PATH");
  environment_ = {fmt::format("PATH={}", path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin"),
                  fmt::format("HOME={}", rules_.scratch), fmt::format("TMPDIR={}", rules_.scratch),
                  "LANG=C.UTF-8"};
}

const char* Box::enter() const noexcept {
  if (!rules_.scratch.empty() && chdir(rules_.scratch.c_str()) != 0) return "chdir";
  // The group of a process that is gone is not killed with it.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return "prctl";
  if (!lower(RLIMIT_NPROC, most_processes) || !lower(RLIMIT_FSIZE, longest_file) ||
      !lower(RLIMIT_MEMLOCK, locked_memory) || !lower(RLIMIT_CORE, 0)) {
    return "setrlimit";
  }
  if (rules_.memory_bytes > 0 && !lower(RLIMIT_DATA, rules_.memory_bytes)) return "setrlimit";
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "no_new_privs";
  if (!drop_capabilities()) return "capset";
  if (!files_.enter()) return "landlock_restrict_self";
  if (!filter_system_calls(rules_.starts_processes)) return "seccomp";
  return nullptr;
}

std::string box_here() {
  const int version = landlock_version();
  std::string has, lacks;
  const auto note = [](std::string& list, std::string_view what) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", what);
  };
  note(version > 0 ? has : lacks, version > 0 ? "landlock" : "no landlock");
  if (version > 0 && version < enough_landlock) {
    note(lacks, fmt::format("landlock {} lets files be cut short", version));
  }
  note(has_seccomp() ? has : lacks, has_seccomp() ? "seccomp" : "no seccomp");
  if (has.empty()) has = "limits alone";
  return lacks.empty() ? has : fmt::format("{}; {}: {}", has, lacks, release_of_linux());
}

}  // namespace attest
