#pragma once

#include "core/run/device.hpp"

namespace attest {

/// What a thread does in one step of a random program. Steps that wait are the same for all
/// threads. meet_warp is a shuffle: lanes wait for each other, but memory is not ordered.
enum class Step : int { nothing, read, write, update, meet_warp, sync_warp, sync_block };

/// One step of one thread: `word` is the element of the small array that it touches.
struct Instruction {
  Step step;
  int word;
};

/// Runs program[(block * threads + thread) * steps + step]. The array has 32 words, in shared
/// memory or in `global`. `sink` takes one int a thread.
void launch_program(Device& device, const Instruction* program, int steps, int* global, int* sink,
                    bool in_shared, int blocks, int threads);
/// order[i] = the thread that came i-th to a counter, over all blocks.
void launch_arrival(Device& device, int* order, unsigned* counter, int blocks, int threads);

}  // namespace attest
