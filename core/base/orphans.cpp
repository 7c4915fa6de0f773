#include "core/base/orphans.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

namespace attest {
namespace {

/// Children of all threads of this process [proc(5)].
std::vector<pid_t> children_now() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream file(thread.path() / "children");
    for (pid_t child = 0; file >> child;) found.push_back(child);
  }
  return found;
}

}  // namespace

void adopt_orphans() {
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

int end_children() {
  int count = 0;
  // What one of them starts meanwhile is found in the next round, and a group dies at once.
  for (std::vector<pid_t> children = children_now(); !children.empty(); children = children_now()) {
    for (const pid_t child : children) {
      (void)kill(-child, SIGKILL);
      (void)kill(child, SIGKILL);
    }
    for (const pid_t child : children) count += waitpid(child, nullptr, 0) == child ? 1 : 0;
  }
  return count;
}

}  // namespace attest
