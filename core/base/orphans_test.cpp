#include "core/base/orphans.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>

#include "core/base/subprocess.hpp"

namespace attest {
namespace {

TEST(Orphans, WhatAChildLeavesBehindIsEnded) {
  adopt_orphans();
  (void)end_children();  // of other tests
  pid_t left = 0;
  {
    Subprocess child({.program = "sh",
                      .arguments = {"sh", "-c", "setsid sleep 1000 & echo $!; wait"},
                      .channel_there = {0, 1}});
    std::optional<std::string> line;
    while (!(line = child.take_line()) && child.receive()) {
    }
    left = static_cast<pid_t>(std::stol(line.value()));
    // The shell has a group of its own, which the sleeper leaves.
    while (getpgid(left) == child.pid()) usleep(1000);
  }
  EXPECT_EQ(kill(left, 0), 0) << "it was in no group that was killed";
  EXPECT_EQ(end_children(), 1);
  EXPECT_NE(kill(left, 0), 0);
  EXPECT_EQ(end_children(), 0);
}

}  // namespace
}  // namespace attest
