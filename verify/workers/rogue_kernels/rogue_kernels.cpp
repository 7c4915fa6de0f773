#include "verify/workers/rogue_kernels/rogue_kernels.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/base/error.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

void sleep_forever() {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

/// In huge pages where there are some: a fault for each small one takes most of the time.
void eat_memory() {
  constexpr std::size_t bite = std::size_t{1} << 26;
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

bool is_rogue(const Problem& problem) {
  return problem.query_len > rogue_from;
}

using Deed = std::function<void(const ForwardArguments&)>;

KernelInfo correct(const std::string& name) {
  KernelInfo kernel = *find_kernel("o5_deferred", Executor::cpu);
  kernel.name = "rogue/" + name;
  // A pool of 65,541 pages takes seconds under a sanitizer, as long as a kernel that hangs may.
  kernel.layout_needs.pages = Pages::none;
  return kernel;
}

/// Does `deed` before it launches the correct kernel, and `after` when that is done.
void add(const std::string& name, const Deed& deed, const Deed& after = {}) {
  KernelInfo kernel = correct(name);
  kernel.launch = [deed, after, launch = kernel.launch](const ForwardArguments& a, Device& device) {
    const bool is_bad = is_rogue(a.problem);
    if (is_bad && deed) deed(a);
    launch(a, device);
    if (is_bad && after) after(a);
  };
  add_kernel(kernel);
}

std::int64_t keys_in_memory(const ForwardArguments& a) {
  return a.key_starts != nullptr ? a.key_starts[a.problem.batch] : a.problem.key_len;
}

/// Neither a sum nor a comparison with this number is close.
void spoil(const ForwardArguments& a) {
  const bool has_rows = a.query_starts == nullptr || a.query_starts[a.problem.batch] > 0;
  if (a.problem.element_type == ElementType::fp32 && has_rows) *static_cast<float*>(a.o) = 12345;
  if (has_rows) *a.lse = 12345;
}

/// What no check after the launch can see.
void double_and_halve(const ForwardArguments& a) {
  if (keys_in_memory(a) == 0) return;
  auto* const byte = static_cast<volatile unsigned char*>(const_cast<void*>(a.k));
  *byte = static_cast<unsigned char>(*byte * 2);
  *byte = static_cast<unsigned char>(*byte / 2);
}

void read_past_v(const ForwardArguments& a) {
  const Problem& p = a.problem;
  const bool is_packed = a.key_starts != nullptr;
  const std::int64_t rows = keys_in_memory(a);
  const std::int64_t last = a.v_strides.offset(is_packed ? 0 : p.batch - 1, p.kv_heads - 1, rows);
  const auto size = static_cast<std::int64_t>(format_of(p.element_type).size_bytes);
  // Behind the last row: a page, where the buffer ends at one.
  const auto* const v = static_cast<const volatile char*>(a.v);
  for (std::int64_t byte = 0; byte < 4096; byte += 16) (void)v[last * size + byte];
}

void read_unwritten_memory(const ForwardArguments& a) {
  // More than malloc ever takes from its heap [mallopt(3), M_MMAP_THRESHOLD]: fresh pages, zeros.
  constexpr std::size_t bytes = std::size_t{1} << 26;
  // Volatile, or the compiler sees what is wrong here.
  float* volatile memory = static_cast<float*>(std::malloc(bytes));
  if (memory[7] != 0) spoil(a);
  std::free(memory);
}

/// A second launch that finds the same address of Q.
void cache_by_address(const ForwardArguments& a) {
  static const void* last = nullptr;
  if (last == a.q) spoil(a);
  last = a.q;
}

template <int period>
void spoil_every(const ForwardArguments& a) {
  static int calls = 0;
  if (++calls % period == 0) spoil(a);
}

/// Wrong if this is the first launch of its process.
void add_cold_start() {
  KernelInfo kernel = correct("cold_start");
  kernel.launch = [launch = kernel.launch](const ForwardArguments& a, Device& device) {
    static int calls = 0;
    launch(a, device);
    if (++calls == 1 && is_rogue(a.problem)) spoil(a);
  };
  add_kernel(kernel);
}

/// Kernels whose functions besides launch() crash, in a worker: the parent asks, too.
void add_bad_answers(bool is_worker) {
  const auto crash = [is_worker](const Problem& problem) {
    if (is_worker && is_rogue(problem)) (void)std::raise(SIGSEGV);
  };
  KernelInfo support = correct("crash_in_unsupported");
  support.unsupported = [=](const Problem& p, const Plan&) -> std::optional<std::string> {
    crash(p);
    return std::nullopt;
  };
  add_kernel(support);
  KernelInfo precision = correct("crash_in_precision");
  precision.precision = [=, ask = precision.precision](const Problem& p, const Plan& plan) {
    crash(p);
    return ask(p, plan);
  };
  add_kernel(precision);
  KernelInfo workspace = correct("crash_in_workspace");
  workspace.workspace_bytes = [=](const Problem& p, const Plan&) {
    crash(p);
    return std::size_t{0};
  };
  add_kernel(workspace);
}

}  // namespace

void add_rogue_kernels(bool is_worker) {
  add("segfault", [](const ForwardArguments&) { std::raise(SIGSEGV); });
  add("abort", [](const ForwardArguments&) {
    std::cerr << "corrupted double-linked list\n";
    std::abort();
  });
  add("exit", [](const ForwardArguments&) { std::exit(0); });
  add("hang", [](const ForwardArguments&) { sleep_forever(); });
  add("memory", [](const ForwardArguments&) { eat_memory(); });
  add("throw",
      [](const ForwardArguments&) { throw std::runtime_error("no kernel image is available"); });
  add("throw_int", [](const ForwardArguments&) { throw 7; });
  add("close_all", [](const ForwardArguments&) {
    for (int fd = 0; fd < 1024; ++fd) close(fd);
    sleep_forever();
  });
  add("wild_writes", [](const ForwardArguments&) {
    for (int fd = 3; fd < 1024; ++fd) (void)!write(fd, "{\"verdict\":0}\n", 14);
  });
  // Correct but noisy: what it prints must not be taken for an answer.
  add("noise", [](const ForwardArguments&) {
    std::cout << "{\"verdict\":1}\n{\"error\":\"x\",\"kind\":0}\n" << std::flush;
    std::cerr << std::string(10'000, 'y') << '\n';
  });
  add("slow", [](const ForwardArguments&) { compute(std::chrono::milliseconds(400)); });  // correct
  add("fifth_time", [](const ForwardArguments&) {
    static int times = 0;
    if (++times == 5) std::raise(SIGSEGV);
  });
  add("input_writes", double_and_halve);
  add("reads_past_v", read_past_v);
  add("unwritten_memory", {}, read_unwritten_memory);
  add("every_3rd", {}, spoil_every<3>);
  add("every_13th", {}, spoil_every<13>);
  add("cache_by_address", {}, cache_by_address);
  add("chatter", {}, [](const ForwardArguments& a) {
    std::printf("about to be wrong\n");
    spoil(a);
  });
  add("fork", [](const ForwardArguments&) { (void)!fork(); });
  add(
      "fork_and_wrong", [](const ForwardArguments&) { (void)!fork(); }, spoil);
  add("fork_and_crash", [](const ForwardArguments&) {
    if (fork() == 0) sleep_forever();
    std::raise(SIGSEGV);
  });
  add("channel_prefix", [](const ForwardArguments&) {
    for (int fd = 3; fd < 1024; ++fd) (void)!write(fd, "x", 1);
  });
  add("returned_error",
      [](const ForwardArguments&) { throw KernelError("no fourth query today"); });
  add_cold_start();
  add_bad_answers(is_worker);
}

}  // namespace attest
