#pragma once

#include <cstdint>
#include <vector>

#include "gpu/microbench/sm_span.hpp"

struct CUtensorMap_st;

namespace attest::microbench {

// The kernels of the benchmarks, for the benchmarks to launch: one block an SM, sink one float a
// thread.

struct Instruction {
  const char* name;
  void (*launch)(int blocks, int iterations, std::uint32_t* sink, SmSpan* spans);
};
/// An iteration is chains * chain_unroll of the instruction in each of chain_threads lanes.
[[nodiscard]] std::vector<Instruction> instructions();
inline constexpr int chain_threads = 512, chains = 8, chain_unroll = 16;

/// Softmaxes of 64 scores a thread and step; `emulated` of 8 exponentials by the cubic.
void launch_softmaxes(int emulated, int blocks, int threads, int steps, float* sink, SmSpan* spans);

enum class Rescale { never, on_demand, always };
/// Softmaxes as above, with 64 elements of O a thread to rescale. On demand, slack 0 makes every
/// step need it.
void launch_rescales(Rescale rescale, int blocks, int threads, int steps, float slack, float* sink,
                     SmSpan* spans);

enum class OperandA { shared, registers, registers_b_transposed };
/// `groups` warpgroups, each with its 64 x 128 times n x 128 products, bf16.
/// values: groups * 64 * 128 + 2 * n * 128 numbers.
void launch_products(int n, OperandA a, int blocks, int groups, int steps,
                     const std::uint16_t* values, float* sink, SmSpan* spans);

struct Beside {
  const char* name;
  const char* unit;  ///< of work a clk and SM
  int n;
  bool a_in_registers;
  /// The first `tensor_groups` warpgroups run `steps` of products, the others work meanwhile.
  /// values: 2 * 64 * 128 + 2 * n * 128 numbers. Counts lanes of instructions, or scores, as work.
  void (*launch)(int blocks, int tensor_groups, int other_groups, int steps,
                 const std::uint16_t* values, float* sink, SmSpan* spans);
};
[[nodiscard]] std::vector<Beside> works_beside();

/// Order in which warpgroups use the tensor cores.
enum class Order {
  serial,            ///< each waits for every product
  turns,             ///< one multiplies while the other works on scores ("ping-pong")
  overlap,           ///< scores of the next tile before the output of this one, softmax meanwhile
  turns_and_overlap  ///< both
};
/// Method by which the softmax keeps its exponentials from overflowing.
enum class Maximum {
  every_tile,  ///< the running maximum, O rescaled with every tile
  lazy,        ///< a running reference, which moves only when a row outgrows it by 2^8
  unchecked  ///< no maximum: weights are computed against the reference, and their sum is looked at
             ///< afterwards
};
struct Mainloop {
  int head_dim, key_rows, groups;
  Order order;
  int emulated;
  Maximum maximum;
  /// values: (groups * 64 + 4 * key_rows) * head_dim numbers.
  void (*launch)(int blocks, int tiles, const std::uint16_t* values, float* sink, SmSpan* spans);
};
[[nodiscard]] std::vector<Mainloop> mainloops();

inline constexpr int stream_tile_rows = 128, stream_tile_bytes = stream_tile_rows * 128;
/// Request for a tile of `stream_tile_bytes`.
enum class Sharing {
  none,            ///< a block, as one box
  none_in_halves,  ///< a block, as two boxes
  halves_for_both  ///< a pair of blocks, each one box for both
};
/// `blocks` SMs each copy `tiles` tiles of 64 columns by TMA from their range of `range_tiles`;
/// neighbours share the `ranges`. The boxes of `map` have the rows of a tile or of half a tile.
/// Work is 1 if the last tiles are those of `data`, the tensor that `map` describes.
void launch_stream(Sharing sharing, const CUtensorMap_st& map, int blocks, int tiles,
                   int range_tiles, int ranges, const std::uint32_t* data, SmSpan* spans);

}  // namespace attest::microbench
