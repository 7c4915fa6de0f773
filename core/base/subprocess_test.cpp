#include "core/base/subprocess.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

namespace attest {
namespace {

Subprocess::Start shell(const std::string& script) {
  return {.program = "sh", .arguments = {"sh", "-c", script}, .channel_there = {0, 1}};
}

/// The next line, or nothing at the end of the stream.
std::optional<std::string> next_line(Subprocess& child) {
  while (true) {
    if (auto line = child.take_line()) return line;
    if (!child.receive()) return std::nullopt;
  }
}

int status_of(Subprocess& child) {
  while (true) {
    if (const auto status = child.status()) return *status;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

bool is_there(pid_t process) {
  return kill(process, 0) == 0;
}

TEST(Subprocess, AnswersLinesWithLines) {
  Subprocess child(shell("while read line; do echo \"got $line\"; done"));
  ASSERT_TRUE(child.send_line("one"));
  EXPECT_EQ(next_line(child), "got one");
  ASSERT_TRUE(child.send_line("two\nthree"));
  EXPECT_EQ(next_line(child), "got two");
  EXPECT_EQ(next_line(child), "got three");
  EXPECT_EQ(child.unread_bytes(), 0U);
  EXPECT_FALSE(child.has_ended());
  EXPECT_FALSE(child.status().has_value());
}

TEST(Subprocess, SaysHowItEndedAndWhatItSentBeforeIsStillRead) {
  Subprocess left(shell("echo last; exit 3"));
  EXPECT_EQ(how_it_ended(status_of(left)), "called exit(3)");
  EXPECT_EQ(next_line(left), "last");
  EXPECT_EQ(next_line(left), std::nullopt);
  Subprocess killed(shell("kill -SEGV $$"));
  EXPECT_EQ(how_it_ended(status_of(killed)), "was killed by SIGSEGV");
}

TEST(Subprocess, WhoeverIsGoneIsNotSentTo) {
  Subprocess child(shell("exit 0"));
  (void)status_of(child);
  EXPECT_FALSE(child.send_line("hello") && child.send_line("hello"));
}

TEST(Subprocess, IsKilledInTheEndWithWhatItStarted) {
  pid_t child_pid = 0, grandchild_pid = 0;
  {
    Subprocess child(shell("sleep 1000 & echo $!; wait"));
    child_pid = child.pid();
    grandchild_pid = static_cast<pid_t>(std::stol(next_line(child).value()));
    EXPECT_TRUE(is_there(child_pid) && is_there(grandchild_pid));
  }
  EXPECT_FALSE(is_there(child_pid)) << "reaped, no zombie";
  // Whoever inherits the grandchild reaps it; until then it is a zombie.
  for (int i = 0; i < 5000 && is_there(grandchild_pid); ++i) {
    std::ifstream file("/proc/" + std::to_string(grandchild_pid) + "/stat");
    std::string text;
    std::getline(file, text);
    if (text.find(") Z") != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_LT(i, 4999);
  }
}

TEST(Subprocess, GetsTheDescriptorsThatItIsGivenAndNoOther) {
  const OwnedFd secret(open("/dev/zero", O_RDONLY));  // without O_CLOEXEC
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const OwnedFd read_end(ends[0]), write_end(ends[1]);
  auto start = shell("echo through >&5; ls /proc/self/fd | tr '\\n' ' '; echo");
  start.descriptors = {{.here = write_end.get(), .there = 5}};
  Subprocess child(start);
  EXPECT_EQ(next_line(child), "0 1 2 3 5 ") << "3 is the folder that ls opened itself";
  std::array<char, 8> buffer{};
  EXPECT_EQ(read(read_end.get(), buffer.data(), buffer.size()), 8);
}

TEST(Subprocess, GivesVariablesOnlyWhereThereAreNone) {
  ASSERT_EQ(setenv("ATTEST_SET", "mine", 1), 0);
  auto start = shell("echo $ATTEST_SET $ATTEST_UNSET");
  start.environment = {"ATTEST_SET=other", "ATTEST_UNSET=given"};
  Subprocess child(start);
  EXPECT_EQ(next_line(child), "mine given");
}

TEST(Subprocess, WhatCannotBeStartedIsNamedAndLeavesNothingOpen) {
  const std::size_t before = open_descriptors();
  try {
    const Subprocess child({.program = "no-such-program", .arguments = {"x"}});
    ADD_FAILURE() << "it started";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code().value(), ENOENT);
    EXPECT_NE(std::string(error.what()).find("no-such-program"), std::string::npos);
  }
  for (int i = 0; i < 3; ++i) Subprocess(shell("exit 0"));
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Subprocess, MovesWithItsProcess) {
  Subprocess child;
  EXPECT_FALSE(child.is_started());
  child = Subprocess(shell("read line; echo $line"));
  EXPECT_TRUE(child.is_started());
  ASSERT_TRUE(child.send_line("still there"));
  EXPECT_EQ(next_line(child), "still there");
}

}  // namespace
}  // namespace attest
