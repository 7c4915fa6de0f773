#include "core/run/fork_watch.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace attest {
namespace {

/// Calls `work` under a watch, in a scope that children of it must not leave.
template <typename Work>
bool child_comes_back(const Work& work) {
  const pid_t process = getpid();
  bool came_back = false;
  try {
    const ForkWatch watch;
    work();
    came_back = watch.child_came_back();
  } catch (const std::runtime_error&) {
  }
  if (getpid() != process) _exit(1);
  int status = 0;
  while (waitpid(-1, &status, 0) > 0) {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "a child left the call";
  }
  return came_back;
}

TEST(ForkWatch, AChildThatComesBackIsReportedEachTime) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(child_comes_back([] { (void)!fork(); }));
  }
  EXPECT_FALSE(child_comes_back([] {})) << "each child is reported once";
}

TEST(ForkWatch, AChildThatLeavesByAnExceptionEndsThere) {
  EXPECT_TRUE(child_comes_back([] {
    if (fork() == 0) throw std::runtime_error("in the child");
  }));
}

TEST(ForkWatch, AHelperThatEndsByItselfIsNoTrouble) {
  EXPECT_FALSE(child_comes_back([] {
    const pid_t child = fork();
    if (child == 0) _exit(3);
    waitpid(child, nullptr, 0);
  }));
}

}  // namespace
}  // namespace attest
