#pragma once

#include "core/run/device.hpp"

namespace attest {

// Launches return without waiting. Arrays are in device memory.

/// Two warpgroups take turns `rounds` times, the first one first: order[i] is the group whose turn
/// the i-th was. The group `slow` pauses in its turns.
void launch_turns(int rounds, int slow, int* order, Device& device);

/// Two warpgroups, each with a barrier of its own, meet rounds[group] times. Each time a thread
/// leaves a number in shared memory and finds its neighbour's, whose warp may be slow: wrong[group]
/// counts those that were not there.
void launch_meetings(int rounds_0, int rounds_1, int* wrong, Device& device);

/// elected[call][thread], for two calls and 64 threads: 1 where is_elected().
void launch_elections(int* elected, Device& device);

inline constexpr int held_values = 200;  ///< of a thread, all in registers at once
inline constexpr int holding_threads = 3 * 128;

/// out[i][thread] = in[i][thread] + the sum of in[j][thread] over all j < held_values: a thread
/// needs them all until it has the last. A block of three warpgroups has 168 registers a thread:
/// the second and third take more, which the first has released; then it takes theirs.
void launch_holding(const float* in, float* out, Device& device);

}  // namespace attest
