#include "verify/workers/processor_time.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

namespace attest {
namespace {

using Seconds = std::chrono::duration<double>;
constexpr Seconds a_while(0.5);

/// A process that does something for ever.
class Child {
 public:
  explicit Child(const std::function<void()>& deed) : pid_(fork()) {
    if (pid_ == 0) {
      while (true) deed();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t id() const { return pid_; }
  void wait_until(const std::function<bool(const ProcessorTime&)>& is_so) const {
    while (!is_so(processor_time(pid_))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  /// The most that it seemed to have used when it was asked now and then, and the time that passed.
  [[nodiscard]] std::pair<Seconds, Seconds> watched() const {
    const auto start = std::chrono::steady_clock::now();
    const ProcessorTime before = processor_time(pid_);
    std::pair<Seconds, Seconds> most{};
    while (most.second < a_while) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const ProcessorTime now = processor_time(pid_);
      most.second = std::chrono::steady_clock::now() - start;
      most.first = std::max(most.first, used(before, now, most.second));
    }
    return most;
  }

 private:
  pid_t pid_;
};

void spin() {
  for (volatile int i = 0; i < 1000;) i = i + 1;
}

TEST(ProcessorTime, WhoSleepsUsesUpHisTime) {
  const Child child([] { pause(); });
  child.wait_until([](const ProcessorTime& t) { return !t.is_ready; });
  const auto [got, passed] = child.watched();
  EXPECT_GT(got, passed / 2);
  EXPECT_LE(got, passed);
}

TEST(ProcessorTime, WhoSpinsUsesUpWhatHeRuns) {
  const Child child(spin);
  const ProcessorTime before = processor_time(child.id());
  child.wait_until(
      [&](const ProcessorTime& now) { return used(before, now, a_while) > Seconds(0); });
}

/// All on one processor. Who is nice waits so long at a time that most of it is one wait, which
/// Linux has not counted yet.
TEST(ProcessorTime, WhoCannotRunForOthersDoesNot) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  for (const int niceness : {0, 19}) {
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const std::array others{std::make_unique<Child>(spin), std::make_unique<Child>(spin),
                            std::make_unique<Child>(spin)};
    const Child child([=, is_set = false]() mutable {
      if (!is_set) is_set = nice(niceness) >= 0;
      spin();
    });
    ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
    const auto [got, passed] = child.watched();
    EXPECT_LT(got, passed / 2) << niceness;
  }
}

/// As a worker waits for the process of its kernel.
TEST(ProcessorTime, OfAChildIsThatOfWhoWaitsForIt) {
  const Child parent([] {
    if (fork() == 0) {
      (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) spin();
    }
    pause();
  });
  parent.wait_until([](const ProcessorTime& now) { return now.ran > a_while && now.is_ready; });
  EXPECT_EQ(children_of(parent.id()).size(), 1U);
}

TEST(ProcessorTime, OfAProcessThatIsNotThereAllTimeCounts) {
  const ProcessorTime nobody = processor_time(-1);
  EXPECT_FALSE(nobody.is_known);
  EXPECT_EQ(used(nobody, nobody, a_while), a_while);
}

}  // namespace
}  // namespace attest
