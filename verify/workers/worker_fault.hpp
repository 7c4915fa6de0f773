#pragma once

#include "verify/judge/phase.hpp"

namespace attest {

/// From now on an access that the processor refuses (SIGSEGV, SIGBUS) leaves a sentence in the note
/// before it kills this process as ever: which buffer of the kernel it was about (describe_fault).
/// For main programs of worker processes; the note outlives the process.
void note_faults_in(ActivityNote& note);

}  // namespace attest
