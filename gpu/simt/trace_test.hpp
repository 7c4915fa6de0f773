#pragma once

#include "core/run/device.hpp"

// Kernels whose counters are known, for tests of the tracer. All run one block; `values` has at
// least 4,096 floats.
namespace attest {

/// Lane i reads word i * stride of shared memory.
void launch_read_shared(Device& device, float* values, int threads, int stride);
/// Lane i reads the vector of 2 or 4 floats at word i / share * stride of shared memory.
void launch_read_shared_vectors(Device& device, float* values, int width, int stride, int share);
/// Lane i reads values[offset + i * stride].
void launch_read_global(Device& device, float* values, int threads, int stride, int offset);
/// Lane i moves 4 floats from global to shared memory: as a float4 whose parts are used, as one
/// that is passed on, or one by one.
enum class Move { parts, whole, scalars };
void launch_move(Device& device, float* values, Move move);
/// Only lanes below `lanes` read shared memory.
void launch_branch(Device& device, float* values, int threads, int lanes);
/// `rounds` times: lane i reads i + 1 words, all lanes the same ones, then writes one of its own.
void launch_ragged_loops(Device& device, float* values, int rounds);
/// `rounds` times: all lanes read one word, then odd lanes another one.
void launch_branch_at_loop_end(Device& device, float* values, int rounds);
/// `rounds` barriers, and `rounds` fmaf a thread; then a shuffle.
void launch_barriers(Device& device, float* values, int threads, int rounds);
/// Block b reads b + 1 words a thread of shared memory.
void launch_blocks(Device& device, float* values, int blocks);

}  // namespace attest
