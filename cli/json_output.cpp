#include "cli/json_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string_view>

#include "core/base/error.hpp"

namespace attest {
namespace {

void flush_all() {
  std::cout.flush();
  (void)std::fflush(stdout);
}

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

}  // namespace attest
