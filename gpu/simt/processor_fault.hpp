#pragma once

#include <cstdint>

#include "gpu/simt/access_check.hpp"

namespace attest::simt {

/// What the processor refused to do for a thread of a kernel.
struct ProcessorFault {
  int signal = 0;              ///< SIGSEGV, SIGBUS or SIGFPE
  std::uintptr_t address = 0;  ///< of the access; SIGFPE: none
  Access access = Access::read;
  ProgramPoint point = 0;
};

/// From now on such a fault ends the launch with a finding, where it would end the process: an
/// index that was read out of bounds leads anywhere. Faults of other code go to whoever handled
/// them before. Any number of calls are one.
void catch_processor_faults();

}  // namespace attest::simt
