#include "cli/interrupt.hpp"

#include <csignal>

namespace attest {
namespace {

volatile std::sig_atomic_t is_set = 0;

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { is_set = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool was_interrupted() {
  return is_set != 0;
}

}  // namespace attest
