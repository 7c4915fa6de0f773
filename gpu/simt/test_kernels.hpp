#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "core/attention/boxed_tensor.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/device.hpp"
#include "core/run/kernel.hpp"

// Kernels that exist only to test the executor, by the file that holds them.

namespace attest {
// detection_test.cu

/// A kernel with one planted bug and the same kernel without it.
struct DetectionCase {
  std::string name;
  std::string kind;                ///< of the finding that the bug must give
  std::vector<std::string> lines;  ///< markers of the source lines that the finding must name
  int blocks, threads;
  /// `values` holds 2 * blocks * threads + 32 floats, of which the kernel may touch all but the
  /// last 32. `counter` is one unsigned that is 0.
  void (*launch)(Device& device, float* values, unsigned* counter, bool planted, int blocks,
                 int threads);
};

/// Prints a case for GoogleTest's messages.
inline void PrintTo(const DetectionCase& c, std::ostream* out) {
  *out << c.name;
}

[[nodiscard]] const std::vector<DetectionCase>& detection_cases();

/// Two threads write the two halves of each 4-byte word; with `overlap` both write the lower half.
void launch_halves(Device& device, unsigned short* values, int words, bool overlap);
/// values[1] = values[0], by one thread.
void launch_copy_half(Device& device, unsigned short* values, int from, int to);
/// *to = *from by one thread of each of three blocks, while the others wait for it.
void launch_copy_float(Device& device, float* to, const float* from);
/// values[0] = values[1] / by.
void launch_divide(Device& device, int* values, int by);

// bulk_test.cu

/// Bug where the copy engine moves bytes that lie side by side.
enum class BulkBug {
  none,
  not_waited_for,         ///< loaded bytes are read at once
  overwritten,            ///< what is to be added is overwritten before it was read
  not_committed,          ///< sums are in no group when their group is waited for
  waits_for_reads_alone,  ///< sums are taken as there when shared memory has been read
};
/// Each of `blocks` blocks adds 3, as 1 and 2, to each of 64 sums; `found`: what each saw then in
/// the first.
void launch_add_twice(Device& device, BulkBug bug, int blocks, float* sums, float* found);
/// Each of `blocks` blocks adds 64 integers.
void launch_add_integers(Device& device, int blocks, const int* terms, int* sums);
/// Adds 1, then 2, to each of 64 sums from a place of its own each, and waits for all but the last.
/// `overwritten`: then it writes to that one's place.
void launch_add_from_two_places(Device& device, BulkBug bug, float* sums);
void launch_load_words(Device& device, BulkBug bug, const unsigned* from, int words, unsigned* out);
/// Four matrices [8, 8] of 16 bits as a warp holds them, [matrix, lane]; `out`: their columns, one
/// behind the other.
void launch_transpose(Device& device, const unsigned* from, unsigned* out);

// cluster_test.cu

/// Bug where blocks of a cluster read each other's shared memory.
enum class ClusterBug {
  none,
  not_before_reading,  ///< no barrier between a write and the others' reads
  no_wait,             ///< threads arrive at it and go on
  not_before_writing,  ///< no barrier between a read and the owner's next write
  not_at_the_end,      ///< none before the owner ends
  thread_exits,        ///< a thread ends instead of coming to the last barrier
  unwritten,           ///< the owner never wrote what is read
  past_the_end         ///< reads lie behind the shared memory of the other block
};

/// `steps` times every block adds to its numbers, its index at first, those of the block behind it
/// in its cluster. out: [block, thread].
void launch_add_neighbours(Device& device, int clusters, int cluster, int threads, int steps,
                           ClusterBug bug, int* out);
/// out[block, i] = 100 i + rank of the block in its cluster, written by block i of the cluster;
/// `begins_at_once`: before all have begun.
void launch_write_to_all(Device& device, int clusters, int cluster, bool begins_at_once, int* out);

// hopper_test.cu

/// First column, row, head and entry of a box.
using BoxAt = std::array<int, 4>;

/// Bug where threads wait for each other; each leaves some waiting for ever.
enum class WaitBug {
  none,
  other_parity,      ///< the loading warp waits for the phase to come
  too_many_bytes,    ///< 16 are announced that no copy brings
  too_few_arrivals,  ///< the barrier counts one more than arrive
  missing_turn,      ///< a group does not pass its turn on
  missing_warp       ///< a warp of four does not come to a product
};

/// Boxes of 8 rows, one below the other from row 0 on, pass through a ring of `stages`: a warp
/// loads, two warps copy to `out`, 1024 bytes a box.
void launch_ring(Device& device, WaitBug bug, const BoxedTensor& from, int boxes, int stages,
                 unsigned* out);
/// Two groups of two warps take `turns` turns each, the first one first; `out` [2 * turns]: whose.
void launch_turns(Device& device, WaitBug bug, int turns, unsigned* out);
/// A product of four warps, or of three.
void launch_lonely_product(Device& device, WaitBug bug);

/// A thread writes 1 to a word that one of another warp reads. Both warps have met at an mbarrier
/// before; only where `is_ordered` they also do between.
void launch_handover(Device& device, bool is_ordered, unsigned* out);

/// Loads a box to shared memory full of 0xff, `misplaced` bytes past a place where one may begin,
/// and copies `bytes` from that place on to `out`.
void launch_load_box(Device& device, const BoxedTensor& from, const BoxAt& at, int misplaced,
                     int bytes, unsigned* out);
/// Stores a box whose image in shared memory is `in`.
void launch_store_box(Device& device, const BoxedTensor& to, const BoxAt& at, const unsigned* in);

/// Layout of a product's operands: A [64, depth] in registers or in shared memory, there along its
/// rows or columns, and B [depth, N] along its columns (K-major) or rows.
struct ProductCase {
  bool is_half;
  int n;
  bool a_in_registers, is_a_mn, is_b_mn;
  bool is_awaited = true;
};
inline constexpr int product_depth = 80;  ///< more than a panel has, and no multiple of it
/// d [64, N] = A B, plus d where `adds`; a, b and d row by row, 16-bit elements as bits.
void launch_product(Device& device, const ProductCase& c, const std::uint16_t* a,
                    const std::uint16_t* b, float* d, bool adds);

// async_copy_test.cu

/// Cases of bugs around an asynchronous copy.
[[nodiscard]] const std::vector<DetectionCase>& async_copy_cases();

/// One block copies `rows` rows of `columns` elements, `stride` elements apart, from `from` through
/// a tile with the given pitch to `to`, contiguous; only the first `existing` rows exist.
void launch_load_tile(Device& device, const float* from, int stride, int existing, int rows,
                      int columns, int pitch, float* to);
/// Loads a tile as the other launch_load_tile does, of elements of two bytes.
void launch_load_tile(Device& device, const unsigned short* from, int stride, int existing,
                      int rows, int columns, int pitch, unsigned short* to);

// barrier_test.cu

void launch_rotate(Device& device, int* values, int blocks, int threads, int rounds);

// elementary_test.cu

/// Function that a kernel computes of one number.
enum class Elementary { exp2, natural_log, tanh };

/// y[i] = f(x[i]).
void launch_elementary(Device& device, Elementary f, const float* x, float* y, int count);

// mma_test.cu

/// d [16, 8] += a [16, 16] b, one warp a block, blocks one after the other in memory. 16-bit
/// elements as bits, fp16 or bf16. `b` is [8, 16], column after column, loaded as it lies, or with
/// `b_by_rows` [16, 8], loaded transposed.
void launch_mma(Device& device, bool is_half, bool b_by_rows, const std::uint16_t* a,
                const std::uint16_t* b, float* d, int blocks);

/// rounded_to_tf32() of 32 numbers.
void launch_rounding(Device& device, const float* from, float* to);

/// Bug of a matrix load.
enum class MatrixLoadBug { none, unaligned_row, unwritten_row, lane_has_exited };
void launch_matrix_load(Device& device, MatrixLoadBug bug, unsigned* out);

// output_tiles_test.cu

/// Launches over the output tiles of a.problem in the order of a.plan. a.o: ints
/// [batch * query_heads, query tiles], to which the block that makes a tile adds 1, after its
/// threads have exchanged values through shared memory as a kernel would; a value that comes from
/// another tile adds 1,000. a.workspace: tile_counter_bytes().
void launch_count_tiles(const ForwardArguments& a, Device& device);

// random_program_test.cu

/// Action of a thread in one step of a random program. Steps that wait are the same for all
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

// register_tile_test.cu

/// Method of loading a tile; `widest` by vectors where the rows allow it.
enum class TileLoad { scalar, widest };

/// A load of rows [begin, begin + rows) of `count`, each `stride` floats after the last.
struct LoadCase {
  int count, stride, begin, rows, columns, filled, pitch;
};

/// Loads a tile of rows `pitch` floats apart into shared memory and copies it to out, [rows,
/// filled].
void launch_load(Device& device, const float* from, const LoadCase& c, TileLoad load, float* out,
                 int threads);
/// counts[row * columns + column] += 1 by the thread that visits the element.
void launch_visit(Device& device, int* counts, int rows, int columns, int threads);
/// sums[thread]: the sum over the row of `row_threads` lanes to which the thread belongs.
void launch_row_sums(Device& device, const float* values, float* sums, int row_threads,
                     int threads);

// trace_test.cu: kernels whose counters are known. All run one block; `values` has at least 4,096
// floats.

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

// warp_test.cu

/// View of one thread on its warp.
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
