#include "plugin/probe.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/base/error.hpp"

namespace attest {
namespace {

// Ends the child's text; a crash after half of it is then not mistaken for the whole.
constexpr char end_of_text = '\0';
constexpr std::size_t longest_text = 1 << 16;

[[noreturn]] void be_the_child(int to_parent, const std::function<std::string()>& work) {
  for (const int fatal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(fatal, SIG_DFL);
  const rlimit no_core{0, 0};
  (void)setrlimit(RLIMIT_CORE, &no_core);
  if (const int nowhere = open("/dev/null", O_RDWR); nowhere >= 0) {
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      (void)dup2(nowhere, standard);
    }
  }
  const std::string text = work() + end_of_text;
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t count = write(to_parent, text.data() + written, text.size() - written);
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  _exit(0);  // without the plugin's destructors
}

/// What the child wrote until its end of text, the end of the pipe or the time limit; sets
/// `timed_out`.
std::string read_text(int from_child, std::chrono::milliseconds limit, bool& timed_out) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::string text;
  while (text.size() < longest_text && (text.empty() || text.back() != end_of_text)) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd ready{.fd = from_child, .events = POLLIN, .revents = 0};
    const int count = left.count() > 0 ? poll(&ready, 1, static_cast<int>(left.count())) : 0;
    if (count < 0 && errno == EINTR) continue;
    timed_out = count == 0;
    if (count <= 0) break;
    std::array<char, 4096> bytes{};
    const ssize_t got = read(from_child, bytes.data(), bytes.size());
    if (got <= 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return text;
}

std::string end_of_child(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("crashes with signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  }
  return fmt::format("ends the process with exit code {}", WEXITSTATUS(status));
}

}  // namespace

ProbeResult run_in_child(const std::function<std::string()>& work,
                         std::chrono::milliseconds limit) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw MachineError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  const pid_t child = fork();
  if (child == 0) be_the_child(ends[1], work);
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    throw MachineError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  bool timed_out = false;
  std::string text = read_text(ends[0], limit, timed_out);
  close(ends[0]);
  const bool finished = !text.empty() && text.back() == end_of_text;
  if (finished || timed_out) (void)kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (finished) {
    text.pop_back();
    return {.finished = true, .text = std::move(text)};
  }
  if (timed_out) {
    return {.text = fmt::format("does not come back within {} s",
                                std::chrono::duration<double>(limit).count())};
  }
  return {.text = end_of_child(status)};
}

}  // namespace attest
