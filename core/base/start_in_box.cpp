#include "core/base/start_in_box.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <span>
#include <system_error>

namespace attest {
namespace {

/// Message of a child that could not start to its parent, before it ends.
struct Trouble {
  const char* call = nullptr;  ///< a text of the program, which both have at the same address
  int error = 0;
};

std::vector<char*> word_pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// Everything that the child needs, made before the fork: it may not ask for memory.
struct Prepared {
  const Box& box;
  const char* program;
  std::vector<char*> arguments, environment;
  std::span<const Subprocess::Descriptor> descriptors;
  int last_descriptor;
  int to_parent;  ///< beyond all others, closed by exec
};

/// The call that failed. Of what may be called between fork and exec of a process with threads.
const char* become(const Prepared& child) noexcept {
  if (setpgid(0, 0) != 0) return "setpgid";
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    (void)sigaction(signal, &usual, nullptr);  // of two signals nothing can be changed
  }
  sigset_t none;
  sigemptyset(&none);
  if (sigprocmask(SIG_SETMASK, &none, nullptr) != 0) return "sigprocmask";
  for (const Subprocess::Descriptor& one : child.descriptors) {
    if (dup2(one.here, one.there) < 0) return "dup2";
  }
  // Before its own descriptors go.
  if (const char* const failed = child.box.enter()) return failed;
  const auto beyond = static_cast<unsigned>(child.last_descriptor) + 1;
  const auto to_parent = static_cast<unsigned>(child.to_parent);
  for (int fd = 0; fd <= child.last_descriptor; ++fd) {
    const bool is_given = std::ranges::any_of(
        child.descriptors, [fd](const Subprocess::Descriptor& one) { return one.there == fd; });
    if (!is_given) (void)close(fd);  // it may not be open
  }
  if (close_range(beyond, to_parent - 1, 0) != 0) return "close_range";
  if (close_range(to_parent + 1, ~0U, 0) != 0) return "close_range";
  environ = const_cast<char**>(child.environment.data());
  (void)execvp(child.program, child.arguments.data());
  return child.program;
}

}  // namespace

pid_t start_in_box(const Box& box, const std::string& program,
                   const std::vector<std::string>& arguments,
                   const std::vector<Subprocess::Descriptor>& descriptors,
                   const std::vector<std::string>& environment) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe2");
  }
  const OwnedFd from_child(ends[0]);
  OwnedFd low(ends[1]);
  int last = STDERR_FILENO;
  int highest = last;
  for (const Subprocess::Descriptor& one : descriptors) {
    last = std::max(last, one.there);
    highest = std::max({highest, one.there, one.here});
  }
  OwnedFd to_parent(fcntl(low.get(), F_DUPFD_CLOEXEC, highest + 1));
  if (to_parent.get() < 0) throw std::system_error(errno, std::generic_category(), "fcntl");
  low.reset();
  const Prepared child{.box = box,
                       .program = program.c_str(),
                       .arguments = word_pointers(arguments),
                       .environment = word_pointers(environment),
                       .descriptors = descriptors,
                       .last_descriptor = last,
                       .to_parent = to_parent.get()};
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler of this process runs in the child
  const pid_t pid = fork();
  if (pid == 0) {
    const char* const call = become(child);
    const Trouble trouble{.call = call, .error = errno};
    (void)!write(child.to_parent, &trouble, sizeof(trouble));
    _exit(127);
  }
  const int fork_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) throw std::system_error(fork_error, std::generic_category(), "fork");
  to_parent.reset();
  Trouble trouble;
  ssize_t size = 0;
  do {
    size = read(from_child.get(), &trouble, sizeof(trouble));
  } while (size < 0 && errno == EINTR);
  if (size != sizeof(trouble)) return pid;  // exec closed the pipe
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  throw std::system_error(trouble.error, std::generic_category(), trouble.call);
}

}  // namespace attest
