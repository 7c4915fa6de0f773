#pragma once

#include <cstdint>

#include "gpu/simt/access_check.hpp"

namespace attest::simt {

/// Operation of a kernel's thread that the processor refused.
struct ProcessorFault {
  int signal = 0;              ///< SIGSEGV, SIGBUS or SIGFPE
  std::uintptr_t address = 0;  ///< of the access; SIGFPE: none
  Access access = Access::read;
  ProgramPoint point = 0;
};

/// Makes such a fault end the launch with a finding from now on, where it would end the process: an
/// index that was read out of bounds leads anywhere. Faults of other code go to whoever handled
/// them before. Any number of calls are one.
void catch_processor_faults();

}  // namespace attest::simt
