#include "gpu/peers/python_worker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/error.hpp"

namespace attest {
namespace {

constexpr int first_script_fd = 3;
constexpr std::size_t longest_last_words = 300;

/// A file in memory; fails only where there is no memory.
int memory_file(std::string_view content) {
  const int fd = memfd_create("attest", MFD_CLOEXEC);
  std::size_t written = 0;
  while (fd >= 0 && written < content.size()) {
    const ssize_t count = write(fd, content.data() + written, content.size() - written);
    if (count < 0 && errno != EINTR) break;
    written += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  if (fd < 0 || written < content.size()) {
    throw MachineError(fmt::format("no file in memory for a Python worker: {}", strerror(errno)));
  }
  return fd;
}

/// What posix_spawn does to file descriptors, freed in the end.
struct FileActions {
  posix_spawn_file_actions_t actions{};
  FileActions() { posix_spawn_file_actions_init(&actions); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  /// Moved up first: a source must not be overwritten by a target before it.
  void give(int fd, int as) { posix_spawn_file_actions_adddup2(&actions, fd, as); }
};

/// The same file beyond all descriptors that the child gets.
int moved_up(int fd) {
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, 64);
  if (high < 0) throw MachineError(fmt::format("no file descriptor left: {}", strerror(errno)));
  close(fd);
  return high;
}

}  // namespace

std::string python_program() {
  const char* const named = std::getenv("ATTEST_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

PythonWorker::PythonWorker(std::string name, std::span<const std::string_view> scripts,
                           Limits limits)
    : name_(std::move(name)), limits_(limits) {
  start(scripts);
  try {
    greeting_ = receive(limits_.start);
  } catch (const KernelError& error) {  // it works on no problem yet
    end();
    throw MachineError(error.what());
  } catch (...) {
    end();
    throw;
  }
}

PythonWorker::~PythonWorker() {
  end();
}

void PythonWorker::start(std::span<const std::string_view> scripts) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw MachineError(fmt::format("no channel to {}: {}", name_, strerror(errno)));
  }
  channel_ = ends[0];
  errors_ = memory_file("");
  std::vector<int> to_close{moved_up(ends[1]), fcntl(errors_, F_DUPFD_CLOEXEC, 64)};
  FileActions files;
  files.give(to_close[0], STDIN_FILENO);
  files.give(to_close[0], STDOUT_FILENO);
  files.give(to_close[1], STDERR_FILENO);
  std::vector<std::string> words{python_program()};
  int fd = first_script_fd;
  for (const std::string_view script : scripts) {
    to_close.push_back(moved_up(memory_file(script)));
    files.give(to_close.back(), fd);
    words.push_back(fmt::format("/proc/self/fd/{}", fd++));
    if (words.size() == 2) words.push_back(std::to_string(getpid()));
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int code =
      posix_spawnp(&pid_, words[0].c_str(), &files.actions, nullptr, arguments.data(), environ);
  for (const int open : to_close) close(open);
  if (code != 0) {
    pid_ = -1;
    end();
    throw MachineError(fmt::format("{} cannot be started: {}: {}; set ATTEST_PYTHON to a Python 3",
                                   name_, words[0], strerror(code)));
  }
}

Json PythonWorker::ask(const Json& request) {
  if (!is_alive()) throw MachineError(fmt::format("{} is gone", name_));
  const std::string line = request.dump() + "\n";
  std::size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t count = send(channel_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw MachineError(bury("it died"));
    sent += static_cast<std::size_t>(count);
  }
  return receive(limits_.answer);
}

Json PythonWorker::receive(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::size_t end_of_line = 0;
  while ((end_of_line = unread_.find('\n')) == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd waiting{.fd = channel_, .events = POLLIN, .revents = 0};
    const int ready = left.count() > 0 ? poll(&waiting, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      throw MachineError(
          bury(fmt::format("no answer in {:.3g} s", std::chrono::duration<double>(limit).count())));
    }
    char bytes[4096];
    const ssize_t count = recv(channel_, bytes, sizeof(bytes), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw MachineError(bury("it died"));
    unread_.append(bytes, static_cast<std::size_t>(count));
  }
  const std::string line = unread_.substr(0, end_of_line);
  unread_.erase(0, end_of_line + 1);
  if (!is_json(line)) throw MachineError(bury(fmt::format("no JSON: {}", line.substr(0, 80))));
  Json answer = parse_json(line);
  if (!answer.is_object()) throw MachineError(bury("an answer that is no object"));
  if (!answer.contains("error")) return answer;
  const std::string error =
      answer["error"].is_string() ? answer["error"].get<std::string>() : answer["error"].dump();
  if (answer.value("fatal", false)) throw MachineError(bury(error));
  const std::string sentence = fmt::format("{}: {}", name_, error);
  if (answer.value("machine", false)) throw MachineError(sentence);
  throw KernelError(sentence);
}

std::string PythonWorker::bury(const std::string& why) {
  std::string words;
  if (errors_ >= 0) {
    const off_t size = lseek(errors_, 0, SEEK_END);
    words.resize(std::min(longest_last_words, static_cast<std::size_t>(std::max<off_t>(size, 0))));
    const ssize_t count =
        pread(errors_, words.data(), words.size(), size - static_cast<off_t>(words.size()));
    words.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  end();
  // The last line of a traceback is the error itself.
  while (!words.empty() && words.back() == '\n') words.pop_back();
  if (const std::size_t last = words.rfind('\n'); last != std::string::npos)
    words.erase(0, last + 1);
  return fmt::format("{}: {}{}", name_, why, words.empty() ? "" : fmt::format(" ({})", words));
}

void PythonWorker::end() noexcept {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }
  for (int* const fd : {&channel_, &errors_}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
}

}  // namespace attest
