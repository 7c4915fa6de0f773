#include "core/run/fault_words.hpp"

#include <sys/ucontext.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

#include "core/run/host_mapping.hpp"

namespace attest {
namespace {

std::span<char> fault_text;
int fault_file = -1;

// A stack that a runaway recursion has used up is no place for a handler.
std::array<char, 1 << 16> fault_stack;

void note_fault(int signal, siginfo_t* info, void* context) {
  // Bit 1 of a page fault's error code: it was a write [Intel SDM volume 3, 4.7].
  constexpr greg_t write_bit = 2;
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  if (info->si_code > 0 &&  // of the processor, not of kill()
      describe_fault(info->si_addr, (registers[REG_ERR] & write_bit) != 0, fault_text) &&
      fault_file >= 0) {
    (void)!write(fault_file, "\nit ", 4);
    (void)!write(fault_file, fault_text.data(), strnlen(fault_text.data(), fault_text.size()));
  }
  // Blocked until the handler returns; then it ends the process, since SA_RESETHAND was set.
  (void)raise(signal);
}

}  // namespace

void describe_faults_in(std::span<char> text, int also_to) {
  fault_text = text;
  fault_file = also_to;
  const stack_t stack{.ss_sp = fault_stack.data(), .ss_flags = 0, .ss_size = fault_stack.size()};
  (void)sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = note_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS}) (void)sigaction(signal, &action, nullptr);
}

}  // namespace attest
