#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/simt/cuda_vector_types.hpp"

// What a running CUDA thread may ask of the executor. All of it is out of line, in files that are
// compiled without hooks: what the executor does for a thread must not appear in the thread's
// memory trace.
namespace attest::simt {

// A thread keeps its place for as long as its kernel runs, so repeated questions need only one
// call.
[[gnu::const]] uint3 thread_index() noexcept;
[[gnu::const]] uint3 block_index() noexcept;
[[gnu::const]] dim3 block_size() noexcept;
[[gnu::const]] dim3 grid_size() noexcept;
/// The block's dynamic shared memory, 256-byte aligned.
[[gnu::const]] void* dynamic_shared_memory() noexcept;

/// Waits for all threads of the block. `file` and `line` are where the kernel says so.
void sync_block(const char* file, int line);
/// Waits for all threads of the block; returns the number of threads whose `predicate` is nonzero.
int sync_block_count(int predicate, const char* file, int line);

enum class WarpOperation : std::uint8_t {
  sync,       ///< orders memory; nothing is exchanged
  shuffle,    ///< returns the value of lane `source`
  ballot,     ///< returns a bit for every lane whose value is nonzero
  match_any,  ///< returns the lanes that hold the same value
  add,
  min_signed,
  min_unsigned,
  max_signed,
  max_unsigned,
  bit_and,
  bit_or,
  bit_xor,
  collective  ///< `value` is the address of a Collective
};
/// Waits until every lane of `mask` that has not exited arrives with the same mask and operation,
/// then exchanges. A lane that is not in the mask, or has exited, gives a pattern that no value
/// explains.
std::uint64_t warp_exchange(WarpOperation operation, unsigned mask, std::uint64_t value,
                            unsigned source, const char* file, int line);
/// Contribution of a lane to an operation that all 32 lanes make together: a struct that begins so
/// and goes on with operands and results.
struct Collective {
  void (*work)(Collective* const* lanes);  ///< the same function for all
};
/// Waits until all lanes of the warp arrive, then calls mine.work once for all. A finding, and no
/// work, when a lane has exited.
void warp_collective(Collective& mine, const char* file, int line);
[[gnu::const]] unsigned lane_index() noexcept;
/// Lanes of the warp that wait nowhere and have not exited: never more than the caller's own in
/// this executor.
unsigned active_mask() noexcept;

/// Says that the thread is about to change [address, address + size) in one indivisible step.
void before_atomic(const void* address, std::size_t size) noexcept;
/// Says that it has done so.
void after_atomic() noexcept;

/// cp.async: starts a copy to shared memory of `bytes` bytes, 4, 8 or 16: `source_bytes` of them
/// from `global`, then zeros. async_copy_queue.hpp says when it arrives.
void start_async_copy(void* shared, const void* global, std::size_t bytes,
                      std::size_t source_bytes);
/// Makes a group of the copies that the thread started since it made the last one.
void commit_async_copies();
/// Waits for all groups of the thread but the `newest` last ones.
void wait_async_copies(unsigned newest);

/// fmaf, counted.
float fused_multiply_add(float a, float b, float c) noexcept;

/// griddepcontrol.wait: what the launch before wrote may be read from here on.
void wait_for_predecessor() noexcept;

/// Says that what the thread wrote so far is visible to other blocks that learn of it.
void memory_fence() noexcept;

}  // namespace attest::simt
