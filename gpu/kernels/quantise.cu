// quantise: codes of 8 bits and scales of a tensor of numbers, to the last bit of the definition
// (core/operations/quantise.hpp). Bound by memory.
//
// Idea
//   A thread works on chunks of eight neighbouring columns: 16 bytes of 16-bit numbers or twice 16
//   of fp32, and 8 of codes. What shares a scale decides who has read all of it.
//     row, none     lanes of a warp share a row, and a warp has four chunks a lane under way: rows,
//                   or pieces of one row where it is wider than 256. Maxima go round by shuffles.
//     block         a thread block keeps its 128 rows in registers, four chunks a thread, and reads
//                   again what does not fit.
//     head, column  three launches: maxima of parts of a head, which go to the workspace; scales,
//                   the maxima of those over M; codes. X is read twice; the second time the parts
//                   that were read last come first, as the L2 may still hold them.
// Resident
//   registers  four chunks of X as they lie in memory
//   shared     maxima of warps, or of columns by group of rows
// Legend
//   M largest number of the code; chunk eight columns of a row; part rows of a head that a block
//   reads for head and column.
// Barriers
//   Before a maximum is read that other warps wrote to shared memory. Nothing there is written
//   twice.
// Limits
//   None but the grid's: 2^31 - 1 blocks.
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include <algorithm>

#include "core/operations/quantise_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "gpu/kernels/quantise_chunks.cuh"
#include "gpu/primitives/launch.cuh"

namespace attest {
namespace {

using namespace quantise_chunks;

constexpr int usual_threads = 256;
constexpr int most_threads = 1024;

/// Rows that a warp of quantise_each_row takes at a time.
ATTEST_HOST_DEVICE int rows_of_warp(const Job& job) {
  return lanes / job.row_lanes * (slots / job.slots_of_row);
}

template <typename T>
__global__ void __launch_bounds__(usual_threads) quantise_each_row(Job job) {
  const Tile<T> tile(job, blockIdx.x);
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int warp = static_cast<int>(threadIdx.x) / lanes;
  const int row_lanes = job.row_lanes, in_row = lane & (row_lanes - 1);
  const int rows_at_once = lanes / row_lanes;
  const std::int64_t first =
      (std::int64_t{tile.number} * (usual_threads / lanes) + warp) * rows_of_warp(job) +
      lane / row_lanes;
  const auto place_of = [&](int slot) {
    const std::int64_t row = first + slot / job.slots_of_row * rows_at_once;
    const int chunk = slot % job.slots_of_row * lanes + in_row;
    return Place{row, chunk, row < tile.rows && chunk < job.chunk_count};
  };
  Chunk<T> chunks[slots];
  load_chunks(job, tile, place_of, chunks);
  ScaleDivisor scales[slots];
  if (job.a.scale_columns > 0) {
    float amax[slots];
#pragma unroll
    for (int slot = 0; slot < slots; ++slot) amax[slot] = largest_of(chunks[slot]);
    if (job.slots_of_row > 1) {
      amax[0] = amax[1] = fmaxf(amax[0], amax[1]);
      amax[2] = amax[3] = fmaxf(amax[2], amax[3]);
    }
    if (job.slots_of_row > 2) amax[0] = amax[1] = amax[2] = amax[3] = fmaxf(amax[0], amax[2]);
    for (int distance = row_lanes / 2; distance > 0; distance /= 2) {
#pragma unroll
      for (int slot = 0; slot < slots; ++slot) {
        amax[slot] = fmaxf(amax[slot], __shfl_xor_sync(0xffffffffU, amax[slot], distance));
      }
    }
#pragma unroll
    for (int slot = 0; slot < slots; ++slot) {
      const float scale = scale_for(job, amax[slot]);
      scales[slot] = ScaleDivisor(scale);
      // Rows past the entry's length have scales, too: of nothing.
      const Place place = place_of(slot);
      if (place.chunk == 0 && place.row < job.a.scale_rows) tile.scales[place.row] = scale;
    }
  }
  convert_chunks(job, tile, place_of, chunks, [&](int slot, int) { return scales[slot]; });
}

/// The largest of all threads' numbers, for all of them; `of_warps` is shared memory that nobody
/// has written.
__device__ float largest_of_block(float mine, float* of_warps) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    mine = fmaxf(mine, __shfl_xor_sync(0xffffffffU, mine, distance));
  }
  if (threadIdx.x % lanes == 0) of_warps[threadIdx.x / lanes] = mine;
  __syncthreads();
  float largest = 0.0F;
  for (unsigned warp = 0; warp < blockDim.x / lanes; ++warp) {
    largest = fmaxf(largest, of_warps[warp]);
  }
  return largest;
}

template <typename T>
__global__ void __launch_bounds__(most_threads) quantise_each_block(Job job) {
  __shared__ float of_warps[most_threads / lanes];
  const Tile<T> tile(job, blockIdx.x);
  const std::int64_t first = std::int64_t{tile.number} * scale_block;
  const std::int64_t left = tile.rows - first;
  const int rows = left <= 0 ? 0 : left < scale_block ? static_cast<int>(left) : scale_block;
  const int count = rows * job.chunk_count, threads = static_cast<int>(blockDim.x);
  /// Places of the chunks from number `begin` of the block on.
  const auto places_from = [&](int begin) {
    return [&, begin](int slot) {
      const int at = begin + slot * threads + static_cast<int>(threadIdx.x);
      return Place{first + job.chunks.quotient(at), job.chunks.remainder(at), at < count};
    };
  };
  const auto largest_of_chunks = [](const Chunk<T>(&some)[slots]) {
    float largest = 0.0F;
#pragma unroll
    for (int slot = 0; slot < slots; ++slot) largest = fmaxf(largest, largest_of(some[slot]));
    return largest;
  };
  const int kept = slots * threads;
  Chunk<T> chunks[slots];
  float amax = 0.0F;
  for (int begin = kept; begin < count; begin += kept) {  // what is read again comes first
    load_chunks(job, tile, places_from(begin), chunks);
    amax = fmaxf(amax, largest_of_chunks(chunks));
  }
  load_chunks(job, tile, places_from(0), chunks);
  amax = fmaxf(amax, largest_of_chunks(chunks));
  const float scale = scale_for(job, largest_of_block(amax, of_warps));
  if (threadIdx.x == 0) tile.scales[tile.number] = scale;
  const ScaleDivisor divisor(scale);
  const auto scale_of = [&](int, int) { return divisor; };
  convert_chunks(job, tile, places_from(0), chunks, scale_of);
  for (int begin = kept; begin < count; begin += kept) {
    load_chunks(job, tile, places_from(begin), chunks);
    convert_chunks(job, tile, places_from(begin), chunks, scale_of);
  }
}

/// Rows [begin, end) of the head that a part holds. A thread takes one chunk of every groups-th
/// row, four rows at a time.
struct Part {
  std::int64_t begin, end;
  int chunk, group, groups;

  __device__ Part(const Job& job, int number, std::int64_t rows) {
    begin = number * job.part_rows;
    end = begin + job.part_rows < rows ? begin + job.part_rows : rows;
    groups = usual_threads / job.chunk_count;
    group = job.chunks.quotient(static_cast<int>(threadIdx.x));
    chunk = job.chunks.remainder(static_cast<int>(threadIdx.x));
    if (group >= groups) end = begin;  // the last threads have no row of their own
  }
  __device__ std::int64_t first_row() const { return begin + group; }
  __device__ int rows_at_once() const { return slots * groups; }
  __device__ auto places_from(std::int64_t row) const {
    return [this, row](int slot) {
      const std::int64_t at = row + slot * groups;
      return Place{at, chunk, at < end};
    };
  }
};

/// Largest magnitudes of a part: one for each column, or one in all.
template <typename T>
__global__ void __launch_bounds__(usual_threads) largest_of_parts(Job job, float* workspace) {
  __shared__ float of_columns[usual_threads * chunk_columns];
  __shared__ float of_warps[usual_threads / lanes];
  const Tile<T> tile(job, blockIdx.x);
  const Part part(job, tile.number, tile.rows);
  float amax[chunk_columns] = {};
  for (std::int64_t row = part.first_row(); row < part.end; row += part.rows_at_once()) {
    Chunk<T> chunks[slots];
    load_chunks(job, tile, part.places_from(row), chunks);
#pragma unroll
    for (int slot = 0; slot < slots; ++slot) {
#pragma unroll
      for (int i = 0; i < chunk_columns; ++i) {
        amax[i] = fmaxf(amax[i], finite_magnitude(chunks[slot][i]));
      }
    }
  }
  const std::int64_t columns = job.a.scale_columns;
  float* const to = workspace + std::int64_t{blockIdx.x} * columns;  // [head, part, column]
  if (job.a.problem.codes.k_scales == Scales::head) {
    float largest = 0.0F;
#pragma unroll
    for (int i = 0; i < chunk_columns; ++i) largest = fmaxf(largest, amax[i]);
    largest = largest_of_block(largest, of_warps);
    if (threadIdx.x == 0) *to = largest;
    return;
  }
#pragma unroll
  for (int i = 0; i < chunk_columns; ++i) of_columns[threadIdx.x * chunk_columns + i] = amax[i];
  __syncthreads();
  for (int column = static_cast<int>(threadIdx.x); column < columns; column += usual_threads) {
    float largest = 0.0F;
    for (int group = 0; group < part.groups; ++group) {
      largest = fmaxf(largest, of_columns[group * job.chunk_count * chunk_columns + column]);
    }
    to[column] = largest;
  }
}

/// Scales of heads or of columns, a thread each, from the parts' magnitudes.
template <Executor home>
__global__ void __launch_bounds__(usual_threads)
    scales_of_parts(Job job, const float* workspace, std::int64_t count) {
  const std::int64_t number = std::int64_t{blockIdx.x} * usual_threads + threadIdx.x;
  if (number >= count) return;
  const std::int64_t columns = job.a.scale_columns;
  const float* const from = workspace + number / columns * job.parts * columns + number % columns;
  float amax = 0.0F;
  for (int part = 0; part < job.parts; ++part) amax = fmaxf(amax, from[part * columns]);
  static_cast<float*>(job.a.scales)[number] = scale_for(job, amax);
}

/// Codes by scales that are there, of heads or of columns.
template <typename T>
__global__ void __launch_bounds__(usual_threads) convert_parts(Job job) {
  const Tile<T> tile(job, gridDim.x - 1 - blockIdx.x);
  const Part part(job, tile.number, tile.rows);
  const bool by_column = job.a.problem.codes.k_scales == Scales::column;
  ScaleDivisor scales[chunk_columns];
#pragma unroll
  for (int i = 0; i < chunk_columns; ++i) {
    const int column = by_column ? part.chunk * chunk_columns + i : 0;
    if (column < job.a.scale_columns) scales[i] = ScaleDivisor(tile.scales[column]);
  }
  for (std::int64_t row = part.first_row(); row < part.end; row += part.rows_at_once()) {
    Chunk<T> chunks[slots];
    load_chunks(job, tile, part.places_from(row), chunks);
    convert_chunks(job, tile, part.places_from(row), chunks,
                   [&](int, int column) { return scales[column]; });
  }
}

int power_of_two_from(int number) {
  int power = 1;
  while (power < number) power *= 2;
  return power;
}

std::int64_t divided_up(std::int64_t number, std::int64_t unit) {
  return (number + unit - 1) / unit;
}

std::int64_t heads_of(const Problem& problem) {
  return problem.batch * problem.kv_heads;
}

/// Parts of a head: blocks for all SMs several times, of 64 rows and more.
std::int64_t parts_of(const Problem& problem) {
  constexpr std::int64_t wanted_blocks = 2112, fewest_rows = 64;
  const std::int64_t wanted = divided_up(wanted_blocks, heads_of(problem));
  const std::int64_t most = divided_up(problem.key_len, fewest_rows);
  return std::max<std::int64_t>(1, std::min(wanted, most));
}

bool is_divisible(const void* address, const Strides& strides, std::int64_t size,
                  std::int64_t vector) {
  const auto divides = [&](std::int64_t stride) { return stride * size % vector == 0; };
  return reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(vector) == 0 &&
         divides(strides.batch) && divides(strides.head) && divides(strides.row);
}

Job job_of(const QuantiseArguments& a) {
  const Problem& problem = a.problem;
  const ElementType code = format_with(problem.codes.k, problem.element_type);
  const auto size = static_cast<std::int64_t>(format_of(problem.element_type).size_bytes);
  Job job{.a = a};
  job.heads = Divisor(problem.kv_heads);
  job.chunk_count = static_cast<int>(divided_up(problem.head_dim, chunk_columns));
  job.chunks = Divisor(job.chunk_count);
  job.row_lanes = power_of_two_from(std::min(job.chunk_count, lanes));
  job.slots_of_row = power_of_two_from(static_cast<int>(divided_up(job.chunk_count, lanes)));
  job.largest = static_cast<float>(format_of(code).max_finite);
  job.is_aligned = problem.head_dim % chunk_columns == 0 &&
                   is_divisible(a.x, a.x_strides, size, sizeof(uint4)) &&
                   is_divisible(a.codes, a.code_strides, 1, sizeof(uint2));
  return job;
}

/// Blocks of a head, and in all.
std::int64_t tiles_of(const Problem& problem, const Job& job) {
  switch (problem.codes.k_scales) {
    case Scales::none:
    case Scales::row:
      return divided_up(problem.key_len, usual_threads / lanes * rows_of_warp(job));
    case Scales::block:
      return divided_up(problem.key_len, scale_block);
    case Scales::head:
    case Scales::column:
      break;
  }
  return parts_of(problem);
}

std::size_t workspace_bytes(const Problem& problem, const Plan& /*plan*/) {
  const Scales kind = problem.codes.k_scales;
  if (kind != Scales::head && kind != Scales::column) return 0;
  const std::int64_t columns = kind == Scales::head ? 1 : problem.head_dim;
  return static_cast<std::size_t>(heads_of(problem) * parts_of(problem) * columns) * sizeof(float);
}

std::optional<std::string> unsupported(const Problem& problem, const Plan& /*plan*/) {
  constexpr std::int64_t most_blocks = (std::int64_t{1} << 31) - 1;
  Arguments arguments;
  arguments.problem = problem;
  const std::int64_t blocks = heads_of(problem) * tiles_of(problem, job_of(arguments));
  if (blocks <= most_blocks) return std::nullopt;
  return "the grid has " + std::to_string(blocks) +
         " blocks; allowed: " + std::to_string(most_blocks);
}

template <typename T>
void run_as(Job job, unsigned blocks, Device& device) {
  const dim3 grid(blocks), usual(usual_threads);
  switch (job.a.problem.codes.k_scales) {
    case Scales::none:
    case Scales::row:
      return launch(quantise_each_row<T>, grid, usual, 0, device, job);
    case Scales::block: {
      const std::int64_t warps = divided_up(scale_block * job.chunk_count, slots * lanes);
      const auto threads =
          static_cast<unsigned>(std::min<std::int64_t>(warps * lanes, most_threads));
      return launch(quantise_each_block<T>, grid, dim3(threads), 0, device, job);
    }
    case Scales::head:
    case Scales::column:
      break;
  }
  const std::int64_t scales = heads_of(job.a.problem) * job.a.scale_columns;
  launch(largest_of_parts<T>, grid, usual, 0, device, job, job.a.workspace);
  launch(scales_of_parts<this_executor>,
         dim3(static_cast<unsigned>(divided_up(scales, usual_threads))), usual, 0, device, job,
         static_cast<const float*>(job.a.workspace), scales);
  launch(convert_parts<T>, grid, usual, 0, device, job);
}

void run(const QuantiseArguments& a, Device& device) {
  const Problem& problem = a.problem;
  Job job = job_of(a);
  const std::int64_t tiles = tiles_of(problem, job);
  if (tiles == 0) return;
  job.tiles = Divisor(tiles);
  job.parts = static_cast<int>(tiles);
  job.part_rows = divided_up(problem.key_len, tiles);
  const auto blocks = static_cast<unsigned>(heads_of(problem) * tiles);
  with_cuda_type(problem.element_type,
                 [&]<typename T>(std::type_identity<T>) { run_as<T>(job, blocks, device); });
}

const KernelRegistration registration{
    {.operation = &quantise_operation,
     .name = "quantise",
     .summary = "codes and scales in as many passes over memory as what shares a scale takes",
     .source = "decoding from codes [claims N2]",
     .executor = this_executor,
     .element_types = {ElementType::fp32, ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none},
     .features = {.lengths = true},
     .codes = {.k = {Code::e4m3, Code::e5m2, Code::int8},
               .k_scales = {Scales::none, Scales::head, Scales::block, Scales::row,
                            Scales::column}},
     .layout_needs = {.takes_entry_gaps = true, .takes_broadcast = true},
     .precision = [](const Problem&, const Plan&) { return DefinedRoundings{}; },
     .plans = [](const Problem&) { return std::vector<Plan>{{}}; },
     .unsupported = unsupported,
     .workspace_bytes = workspace_bytes,
     .launch = run}};

}  // namespace
}  // namespace attest
