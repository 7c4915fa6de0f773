#include "core/run/rank_processes.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <thread>

#include "core/base/error.hpp"
#include "core/run/rank_process.hpp"

namespace attest {
namespace {

constexpr double long_enough = 600;  // seconds

/// Ranks that do what a shell says for every task: $me is the rank, $ranks and $text the task;
/// `say` sends a line, `answer` one that answers it, `hear` reads one into $from and $heard.
RankProcesses shells(const std::string& script, double seconds = long_enough) {
  const std::string life = R"(
    me=$1
    say() { echo "$@" >&3; }
    answer() { say answer $number "$@"; }
    hear() { read -r word from heard <&3; }
    while read -r word number ranks text <&3; do
    )" + script + "\ndone";
  return RankProcesses({.program = "/bin/sh", .arguments = {"sh", "-c", life, "rank"}}, seconds);
}

/// Message of the error that a task ends with.
template <typename Error = KernelError>
std::string error_of(RankProcesses& ranks, std::int64_t count) {
  try {
    (void)ranks.ask(count, "task");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(RankProcesses, EveryRankHasTheTaskAndAnswersComeInTheOrderOfRanks) {
  RankProcesses ranks = shells("[ $me = 0 ] && sleep 0.1; answer $me of $ranks: $text");
  const std::vector<std::string> want{"0 of 3: a task", "1 of 3: a task", "2 of 3: a task"};
  EXPECT_EQ(ranks.ask(3, "a task"), want);
}

TEST(RankProcesses, WhatARankTellsReachesAllOthersAndNotItself) {
  RankProcesses ranks =
      shells("say tell word of $me; hear; a=$from/$heard; hear; answer $a $from/$heard");
  const std::vector<std::string> answers = ranks.ask(3, "");
  for (int me = 0; me < 3; ++me) {
    for (int other = 0; other < 3; ++other) {
      const std::string heard = std::to_string(other) + "/word of " + std::to_string(other);
      EXPECT_EQ(contains(answers[static_cast<std::size_t>(me)], heard), me != other)
          << answers[static_cast<std::size_t>(me)];
    }
  }
}

TEST(RankProcesses, AProcessServesTaskAfterTaskInGroupsOfAnySize) {
  RankProcesses ranks = shells("answer $$");
  const std::vector<std::string> two = ranks.ask(2, ""), three = ranks.ask(3, ""),
                                 one = ranks.ask(1, "");
  EXPECT_NE(two[0], two[1]);
  EXPECT_EQ(three[0], two[0]);
  EXPECT_EQ(three[1], two[1]);
  EXPECT_EQ(one, std::vector{two[0]});
}

TEST(RankProcesses, OneThatDiesIsNamedWithItsEndAndWhatItDid) {
  RankProcesses ranks =
      shells("[ $me = 1 ] && say step it took its keys && kill -SEGV $$; sleep 1000");
  EXPECT_EQ(error_of(ranks, 3), "rank 1 of 3 was killed by SIGSEGV, while it took its keys");
}

TEST(RankProcesses, OneThatDoesNotAnswerInTimeIsNamedAndAllOfThemAreEnded) {
  RankProcesses ranks =
      shells("[ $me = 0 ] && answer $$; [ $me = 1 ] && say step $$ && sleep 1000", 0.5);
  const std::string error = error_of(ranks, 2);
  if (contains(error, "it started")) GTEST_SKIP() << "the machine is busy: no rank ran in time";
  ASSERT_TRUE(error.starts_with("no answer within 0.5 s of rank 1 of 2")) << error;
  EXPECT_FALSE(contains(error, "rank 0")) << error;
  const pid_t late = std::stoi(error.substr(error.rfind(' ')));
  EXPECT_TRUE(kill(late, 0) == -1 && errno == ESRCH) << late << " lives";
}

TEST(RankProcesses, OneThatTalksOnAndOnIsLateAllTheSame) {
  RankProcesses ranks = shells("while true; do say step talking; done", 0.5);
  EXPECT_TRUE(error_of(ranks, 1).starts_with("no answer within 0.5 s of rank 0 of 1"));
}

TEST(RankProcesses, OneThatDoesNotReadWhatItIsToldIsAnErrorAndHoldsNobodyUp) {
  RankProcesses ranks = shells(
      "[ $me = 1 ] && sleep 1000; while true; do say tell $(printf %10000d 0); done 2> /dev/null",
      0.5);
  const std::string error = error_of(ranks, 2);
  EXPECT_TRUE(contains(error, "rank 1 of 2 does not read") || contains(error, "no answer"))
      << error;
}

TEST(RankProcesses, AfterAnErrorTheNextTaskStartsAnew) {
  RankProcesses ranks = shells("[ $text = task ] && exit 3; answer $text");
  EXPECT_TRUE(contains(error_of(ranks, 1), "rank 0 of 1 called exit(3)"));
  EXPECT_EQ(ranks.ask(2, "again"), (std::vector<std::string>{"again", "again"}));
}

TEST(RankProcesses, ErrorsOfKernelAndMachineStayWhatTheyAreAndNameTheRank) {
  RankProcesses kernel = shells("[ $me = 1 ] && say kernel_error guard written");
  EXPECT_TRUE(error_of(kernel, 2).starts_with("rank 1 of 2: guard written"));
  RankProcesses machine = shells("[ $me = 0 ] && say machine_error no memory");
  EXPECT_TRUE(error_of<MachineError>(machine, 2).starts_with("rank 0 of 2: no memory"));
}

TEST(RankProcesses, WordsThatAreNoMessageAreAnError) {
  RankProcesses ranks = shells("say hello world");
  EXPECT_TRUE(contains(error_of(ranks, 1), "said 'hello'"));
  RankProcesses twice = shells("answer 1; answer 2; sleep 1000");
  std::string error = error_of(twice, 1);
  // The second one comes during the task, or is no answer to the next.
  if (error == "no error") error = error_of(twice, 1);
  EXPECT_TRUE(contains(error, "said 'answer'")) << error;
}

TEST(RankProcesses, AProgramThatDoesNotExistIsTroubleOfTheMachine) {
  RankProcesses ranks({.program = "/no/such/program", .arguments = {"program"}}, long_enough);
  EXPECT_TRUE(contains(error_of<MachineError>(ranks, 1), "cannot start the process of a rank"));
}

/// Two ends of a channel.
std::pair<OwnedFd, OwnedFd> channel() {
  std::array<int, 2> ends{-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw MachineError("");
  return {OwnedFd(ends[0]), OwnedFd(ends[1])};
}

TEST(RankChannel, LinesOfARankComeInTheirOrderWhicheverRankIsAskedFor) {
  auto [here, there] = channel();
  RankChannel rank(std::move(there), 1);
  ASSERT_TRUE(send_all(here.get(), "task 1 3 work text\nfrom 2 a\nfrom 0 x y\nfrom 2 b\n"));
  EXPECT_EQ(rank.next_task(), "work text");
  EXPECT_EQ(rank.ranks(), 3);
  EXPECT_EQ(rank.hear(0), "x y");
  EXPECT_EQ(rank.hear(2), "a");
  EXPECT_EQ(rank.hear(2), "b");
}

TEST(RankChannel, ARankMeetsAllOthersAndNoneThatSaysSomethingElse) {
  auto [here, there] = channel();
  RankChannel rank(std::move(there), 1);
  ASSERT_TRUE(
      send_all(here.get(), "task 1 3 t\nfrom 2 here\nfrom 0 here\nfrom 0 here\nfrom 2 no\n"));
  (void)rank.next_task();
  EXPECT_NO_THROW(rank.meet());
  EXPECT_THROW(rank.meet(), MachineError);
}

TEST(RankChannel, ReadingEndsWhereTheOtherEndIsClosed) {
  auto [here, there] = channel();
  RankChannel rank(std::move(there), 0);
  here.reset();
  EXPECT_THROW((void)rank.next_task(), RankChannel::ChannelClosed);
}

TEST(RankChannel, AProcessEndsWithTheOtherEndWhateverItIsWaitingFor) {
  auto [here, there] = channel();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    here.reset();
    end_with_other_end_of(there.get());
    while (true) pause();
  }
  there.reset();
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "it ended before the channel was closed";
  here.reset();
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
}

/// A rank's process, number 1, and this end of its channel.
struct Living {
  OwnedFd channel;
  pid_t process = -1;

  Living() {
    auto [here, there] = attest::channel();
    process = fork();
    if (process == 0) {
      here.reset();
      if (there.get() != rank_channel_fd) dup2(there.get(), rank_channel_fd);
      run_rank_process(1);
    }
    channel = std::move(here);
  }
  ~Living() {
    channel.reset();  // by which it ends
    waitpid(process, nullptr, 0);
  }
  Living(const Living&) = delete;
  Living& operator=(const Living&) = delete;

  /// The line that it says to a task.
  [[nodiscard]] std::string said_to(const std::string& task) const {
    EXPECT_TRUE(send_all(channel.get(), "task 7 2 " + task + '\n'));
    std::string line;
    for (char c = 0; recv(channel.get(), &c, 1, 0) == 1 && c != '\n';) line += c;
    return line;
  }
};

const RankWorkRegistration echo("echo", [](const std::string& task, RankChannel& rank) {
  if (task == "kernel") throw KernelError("a guard was written");
  if (task == "machine") throw MachineError("no\nmemory");
  return task + " of " + std::to_string(rank.rank()) + " in " + std::to_string(rank.ranks());
});

TEST(RankProcess, AnswersTaskAfterTask) {
  const Living rank;
  EXPECT_EQ(rank.said_to("echo a b"), "answer 7 a b of 1 in 2");
  EXPECT_EQ(rank.said_to("echo c"), "answer 7 c of 1 in 2");
}

TEST(RankProcess, SaysWhoseErrorItIsInOneLine) {
  EXPECT_EQ(Living().said_to("echo kernel"), "kernel_error a guard was written");
  EXPECT_EQ(Living().said_to("echo machine"), "machine_error no memory");
  EXPECT_EQ(Living().said_to("other task"), "machine_error this program has no ranks of 'other'");
}

}  // namespace
}  // namespace attest
