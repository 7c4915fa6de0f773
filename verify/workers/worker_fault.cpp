#include "verify/workers/worker_fault.hpp"

#include <sys/ucontext.h>

#include <array>
#include <csignal>

#include "core/run/host_mapping.hpp"

namespace attest {
namespace {

ActivityNote* fault_note = nullptr;

// A stack that a runaway recursion has used up is no place for a handler.
std::array<char, 1 << 16> fault_stack;

void note_fault(int signal, siginfo_t* info, void* context) {
  // Bit 1 of a page fault's error code: it was a write [Intel SDM volume 3, 4.7].
  constexpr greg_t write_bit = 2;
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  if (info->si_code > 0) {  // of the processor, not of kill()
    (void)describe_fault(info->si_addr, (registers[REG_ERR] & write_bit) != 0, fault_note->fault);
  }
  // Blocked until the handler returns; then it ends the process, since SA_RESETHAND was set.
  (void)raise(signal);
}

}  // namespace

void note_faults_in(ActivityNote& note) {
  fault_note = &note;
  const stack_t stack{.ss_sp = fault_stack.data(), .ss_flags = 0, .ss_size = fault_stack.size()};
  (void)sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = note_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS}) (void)sigaction(signal, &action, nullptr);
}

}  // namespace attest
