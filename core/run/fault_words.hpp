#pragma once

#include <span>

namespace attest {

/// From now on an access that the processor refuses (SIGSEGV, SIGBUS) leaves a sentence in `text`
/// before it kills this process as ever: which buffer of the kernel it was about (describe_fault).
/// `also_to`: a descriptor that gets it as a line, too; -1: none. For main programs of processes
/// that run kernels; `text` is not empty, and outlives the process.
void describe_faults_in(std::span<char> text, int also_to = -1);

}  // namespace attest
