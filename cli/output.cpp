#include "cli/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

void flush_all() {
  std::cout.flush();
  (void)std::fflush(stdout);
}

bool has_colours() {
  const char* const refused = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && (refused == nullptr || *refused == '\0') &&
         terminal != nullptr && std::string_view(terminal) != "dumb";
}

/// `code`: of ANSI's select graphic rendition.
std::string coloured(int code, std::string_view text) {
  static const bool is_wanted = has_colours();
  return is_wanted ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

volatile std::sig_atomic_t is_set = 0;

}  // namespace

JsonOutput::JsonOutput(bool is_wanted) {
  if (!is_wanted) return;
  flush_all();
  stdout_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100);
  if (stdout_ < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    throw MachineError(fmt::format("--json cannot take stdout: {}", std::strerror(errno)));
  }
}

JsonOutput::~JsonOutput() {
  if (stdout_ < 0) return;
  flush_all();
  (void)dup2(stdout_, STDOUT_FILENO);
  close(stdout_);
}

void JsonOutput::print(const std::string& object) {
  if (stdout_ < 0) return;
  const std::string line = object + '\n';
  for (std::string_view left = line; !left.empty();) {
    const ssize_t written = write(stdout_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw MachineError(fmt::format("cannot write to stdout: {}", strerror(errno)));
    left.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string as_good(std::string_view text) {
  return coloured(32, text);
}

std::string as_bad(std::string_view text) {
  return coloured(31, text);
}

std::string as_open(std::string_view text) {
  return coloured(33, text);
}

std::string replay_line(const std::filesystem::path& counterexample) {
  const char* const command = std::getenv("ATTEST_COMMAND");
  return fmt::format("  replay   {} replay {}\n",
                     command == nullptr ? "./attest" : printable(command), counterexample.string());
}

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { is_set = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool was_interrupted() {
  return is_set != 0;
}

}  // namespace attest
