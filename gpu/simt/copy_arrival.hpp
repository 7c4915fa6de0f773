#pragma once

namespace attest::simt {

/// cp.async.mbarrier.arrive.noinc: the running thread arrives at the barrier (hopper.hpp) once the
/// copies have arrived that it has started by AsyncCopies. On a GPU that is at some time; here they
/// come, and it arrives, when somebody waits for the barrier, or, in half of the blocks, at once.
void arrive_after_copies(void* barrier);

}  // namespace attest::simt
