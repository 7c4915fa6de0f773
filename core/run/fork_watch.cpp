#include "core/run/fork_watch.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

namespace attest {
namespace {

/// Time in which a child that was forked is expected to come back, or to end. Long beside what a
/// scheduler needs on a busy machine; only a call whose child does neither pays it.
constexpr auto patience = std::chrono::seconds(2);

std::atomic<int> forks = 0;  // of this process

/// Children that came back, in a page that they share with their parent.
std::atomic<int>& returned_children() {
  static std::atomic<int>* const counter = [] {
    // Neither vfork nor posix_spawn calls this: what they make runs another program.
    (void)pthread_atfork(
        nullptr, [] { ++forks; }, nullptr);
    void* const page = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    static std::atomic<int> own_memory = 0;  // a child cannot be heard, but ends
    return page == MAP_FAILED ? &own_memory : new (page) std::atomic<int>(0);
  }();
  return *counter;
}

bool has_children() {
  siginfo_t child{};
  return waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace

ForkWatch::ForkWatch() : process_(getpid()), forks_(forks) {
  (void)returned_children();
}

ForkWatch::~ForkWatch() {
  if (getpid() == process_) return;
  ++returned_children();
  _exit(0);
}

bool ForkWatch::child_came_back() const {
  if (getpid() != process_) return false;
  std::atomic<int>& returned = returned_children();
  if (forks != forks_) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (returned == 0 && has_children() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return returned.exchange(0) > 0;
}

}  // namespace attest
