#pragma once

#include "core/run/device.hpp"

namespace attest {

/// What one thread sees of its warp.
struct WarpView {
  int from_lane, down, up, across, in_groups;
  unsigned ballot, any, all, same;
  int sum, smallest, largest;
  unsigned bits_or, bits_xor;
  float float_sum;
  long long wide;
};

/// views[block * threads + thread]; `values` has one int a thread.
void launch_look(Device& device, const int* values, WarpView* views, int blocks, int threads);
/// Lanes below `split` of every warp rotate their values among themselves `rounds` times, the
/// others do it twice as often.
void launch_split_warp(Device& device, int* values, int threads, int split, int rounds);
/// values[thread] = sum over rounds r of r + (thread ^ 1), handed over through shared memory with
/// __syncwarp alone.
void launch_warp_rounds(Device& device, int* values, int rounds, int threads);
/// Lanes from `stay` on exit; the others vote with the whole warp and write the votes, in blocks of
/// 64 threads.
void launch_vote_of_the_rest(Device& device, unsigned* votes, int stay, int blocks);
/// sums: [0] of all values by atomicAdd, [1] maximum, [2] minimum, [3] count by atomicCAS, [4] by
/// atomicInc modulo 10.
void launch_atomics(Device& device, const int* values, int* sums, int blocks, int threads);
/// Index of each thread and block, written at its linear position: x + 1000 y + 1000000 z.
void launch_indices(Device& device, int* threads, int* blocks);

}  // namespace attest
