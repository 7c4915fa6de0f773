#include "core/base/subprocess.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/base/box.hpp"
#include "core/base/start_in_box.hpp"

namespace attest {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw std::system_error(error, std::generic_category(), what);
}

/// `SIGSEGV`, or its number where it has no name.
std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

/// Duplicate of a descriptor, beyond all that a child gets: none is overwritten before it is given.
OwnedFd moved_up(int fd) {
  constexpr int beyond = 64;
  OwnedFd high(fcntl(fd, F_DUPFD_CLOEXEC, beyond));
  if (high.get() < 0) fail("fcntl", errno);
  return high;
}

/// Actions of posix_spawn on descriptors and signals, freed in the end.
struct SpawnActions {
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};

  SpawnActions() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
  }
};

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// Environment of this process, and the variables that it has not.
std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  for (const std::string& variable : more) {
    const std::string name = variable.substr(0, variable.find('=') + 1);
    const bool is_set = std::ranges::any_of(
        variables, [&](const std::string& one) { return one.starts_with(name); });
    if (!is_set) variables.push_back(variable);
  }
  return variables;
}

}  // namespace

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
  if (this != &other) reset(other.release());
  return *this;
}

void OwnedFd::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

int OwnedFd::release() {
  return std::exchange(fd_, -1);
}

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return "was killed by " + signal_name(WTERMSIG(status));
  return fmt::format("called exit({})", WEXITSTATUS(status));
}

Subprocess::Subprocess(const Start& start) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    fail("socketpair", errno);
  }
  channel_.reset(ends[0]);
  const OwnedFd its_channel(ends[1]);
  std::vector<Descriptor> given = start.descriptors;
  for (const int there : start.channel_there) given.push_back({its_channel.get(), there});
  std::vector<OwnedFd> sources;
  for (const Descriptor& one : given) sources.push_back(moved_up(one.here));
  if (start.box) {
    for (std::size_t i = 0; i < given.size(); ++i) given[i].here = sources[i].get();
    std::vector<std::string> environment = start.box->environment();
    environment.insert(environment.end(), start.environment.begin(), start.environment.end());
    pid_ = start_in_box(*start.box, start.program, start.arguments, given, environment);
    return;
  }
  SpawnActions actions;
  const int last = std::ranges::max(given, {}, &Descriptor::there).there;
  // What is not open there to begin with is no error.
  for (int fd = STDERR_FILENO + 1; fd <= last; ++fd) {
    posix_spawn_file_actions_addclose(&actions.files, fd);
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    posix_spawn_file_actions_adddup2(&actions.files, sources[i].get(), given[i].there);
  }
  posix_spawn_file_actions_addclosefrom_np(&actions.files, last + 1);
  const std::vector<std::string> environment = environment_with(start.environment);
  const int error =
      posix_spawnp(&pid_, start.program.c_str(), &actions.files, &actions.attributes,
                   pointers_to(start.arguments).data(), pointers_to(environment).data());
  if (error != 0) {
    pid_ = -1;
    fail(start.program, error);
  }
}

Subprocess::Subprocess(Subprocess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      status_(other.status_),
      channel_(std::move(other.channel_)),
      unread_(std::move(other.unread_)) {}

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  if (this == &other) return *this;
  end();
  pid_ = std::exchange(other.pid_, -1);
  status_ = other.status_;
  channel_ = std::move(other.channel_);
  unread_ = std::move(other.unread_);
  return *this;
}

bool Subprocess::send_line(std::string_view line) const {
  return send_all(channel_.get(), std::string(line) + '\n');
}

bool Subprocess::receive() {
  std::array<char, 16384> buffer{};
  const ssize_t size = recv(channel_.get(), buffer.data(), buffer.size(), 0);
  if (size < 0) return errno == EINTR;
  unread_.append(buffer.data(), static_cast<std::size_t>(size));
  return size > 0;
}

std::optional<std::string> Subprocess::take_line() {
  const std::size_t end = unread_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

bool Subprocess::has_ended() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

std::optional<int> Subprocess::status() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_;
}

void Subprocess::end() noexcept {
  if (pid_ <= 0) return;
  kill(-pid_, SIGKILL);
  if (!status_) {
    kill(pid_, SIGKILL);  // should it have changed its group
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  status_.reset();
  channel_.reset();
}

}  // namespace attest
