#include "verify/rogue_kernels/rogue_kernels.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/registry.hpp"

namespace attest {
namespace {

void sleep_forever() {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

/// In huge pages where there are some: a fault for each small one takes most of the time.
void eat_memory() {
  constexpr std::size_t bite = std::size_t{1} << 24;
  while (true) {
    void* const eaten =
        mmap(nullptr, bite, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (eaten == MAP_FAILED) sleep_forever();
    (void)madvise(eaten, bite, MADV_HUGEPAGE);
    std::memset(eaten, 'x', bite);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// For so long on a core, however long that takes.
void compute(std::chrono::nanoseconds time) {
  const auto used = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  const auto end = used() + time;
  while (used() < end) continue;
}

void add(const std::string& name, const std::function<void()>& deed) {
  KernelInfo kernel = *find_kernel("o5_deferred", Executor::cpu);
  kernel.name = "rogue/" + name;
  kernel.launch = [deed, launch = kernel.launch](const Arguments& arguments, Device& device) {
    if (arguments.problem.query_len > rogue_from) deed();
    launch(arguments, device);
  };
  add_kernel(kernel);
}

}  // namespace

void add_rogue_kernels() {
  add("segfault", [] { std::raise(SIGSEGV); });
  add("abort", [] {
    std::cerr << "corrupted double-linked list\n";
    std::abort();
  });
  add("exit", [] { std::exit(0); });
  add("hang", sleep_forever);
  add("memory", eat_memory);
  add("throw", [] { throw std::runtime_error("no kernel image is available"); });
  add("throw_int", [] { throw 7; });
  add("close_all", [] {
    for (int fd = 0; fd < 1024; ++fd) close(fd);
    sleep_forever();
  });
  add("wild_writes", [] {
    for (int fd = 3; fd < 1024; ++fd) (void)!write(fd, "{\"verdict\":0}\n", 14);
  });
  // Correct but noisy: what it prints must not be taken for an answer.
  add("noise", [] {
    std::cout << "{\"verdict\":1}\n{\"error\":\"x\",\"kind\":0}\n" << std::flush;
    std::cerr << std::string(10'000, 'y') << '\n';
  });
  add("slow", [] { compute(std::chrono::milliseconds(400)); });  // correct
  add("third_time", [] {
    static int times = 0;
    if (++times == 3) std::raise(SIGSEGV);
  });
}

}  // namespace attest
