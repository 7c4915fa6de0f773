#include "gpu/simt/processor_fault.hpp"

#include <ucontext.h>

#include <array>
#include <csignal>
#include <cstddef>

#include "gpu/simt/block_runner.hpp"

namespace attest::simt {
namespace {

constexpr std::array caught{SIGSEGV, SIGBUS, SIGFPE};
std::array<struct sigaction, NSIG> before;

thread_local ProcessorFault fault;

// The report takes memory and locks, which a handler must not: the thread goes on here instead of
// where it stopped.
[[noreturn]] void leave_kernel() {
  running_thread.runner->abandon(fault);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  // Bit 1 of a page fault's error code: it was a write [Intel SDM volume 3, 4.7].
  constexpr greg_t write_bit = 2;
  // Below the stack pointer a function may keep this many bytes of its own [System V ABI, x86-64].
  constexpr greg_t red_zone = 128;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  BlockRunner* const runner = running_thread.runner;
  const bool is_of_the_processor = info->si_code > 0;  // not of kill()
  if (runner == nullptr || !is_of_the_processor ||
      (signal != SIGFPE && runner->is_on_stack(address))) {
    // The access is made again when this handler returns, and meets the one before it.
    (void)sigaction(signal, &before[static_cast<std::size_t>(signal)], nullptr);
    if (!is_of_the_processor) (void)raise(signal);
    return;
  }
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  fault = {.signal = signal,
           .address = signal == SIGFPE ? 0 : address,
           .access = signal != SIGFPE && (registers[REG_ERR] & write_bit) != 0 ? Access::write
                                                                               : Access::read,
           // Points are return addresses: one past the instruction.
           .point = point_of(reinterpret_cast<const void*>(registers[REG_RIP] + 1))};
  // As behind a call: 8 past a multiple of 16.
  registers[REG_RSP] = (registers[REG_RSP] - red_zone) / 16 * 16 - 8;
  registers[REG_RIP] = reinterpret_cast<greg_t>(&leave_kernel);
}

bool install() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  // On the thread's other stack, if it has one: its own may be used up.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int signal : caught) {
    (void)sigaction(signal, &action, &before[static_cast<std::size_t>(signal)]);
  }
  return true;
}

}  // namespace

void catch_processor_faults() {
  [[maybe_unused]] static const bool installed = install();
}

}  // namespace attest::simt
