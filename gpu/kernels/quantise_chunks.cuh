#pragma once

// Chunks of eight neighbouring columns, as the kernels of quantise.cu work on them: where they lie,
// four of a thread that are read at once, their largest magnitude, and their codes.

#include <cstdint>

#include "core/operations/quantise_arguments.hpp"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/divisor.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/number_code.hpp"

namespace attest {
namespace quantise_chunks {

inline constexpr int lanes = 32;
inline constexpr int chunk_columns = 8;
inline constexpr int slots = 4;  ///< chunks that a thread has in registers

/// A launch: its arguments, and numbers that the host computes once.
struct Job {
  QuantiseArguments a;
  Divisor tiles = {}, heads = {};  ///< blocks of a head, heads of an entry
  Divisor chunks = {};             ///< of a row
  int chunk_count = 0;             ///< of a row
  int row_lanes = 0;               ///< lanes of a warp that share a row: a power of two
  int slots_of_row = 1;            ///< chunks that a lane has of one row: 1, 2 or 4
  int parts = 0;                   ///< of a head
  std::int64_t part_rows = 0;
  float largest = 0;        ///< M
  bool is_aligned = false;  ///< chunks can be read and written as vectors

  /// Columns of a row from where a chunk begins.
  __device__ int columns_from(int chunk) const {
    return static_cast<int>(a.problem.head_dim) - chunk * chunk_columns;
  }
};

/// A chunk of a head, if there is one.
struct Place {
  std::int64_t row = 0;
  int chunk = 0;
  bool exists = false;
};

/// The head and the tile of it that a block works on.
template <typename T>
struct Tile {
  const T* x;
  std::uint8_t* codes;
  std::int64_t x_stride, code_stride, rows;
  float* scales;  ///< of the head
  int number;     ///< in the head

  __device__ Tile(const Job& job, unsigned block) {
    const QuantiseArguments& a = job.a;
    const int head = job.tiles.quotient(static_cast<int>(block));
    number = job.tiles.remainder(static_cast<int>(block));
    const int entry = job.heads.quotient(head), in_entry = job.heads.remainder(head);
    const std::int64_t stored = a.stored_entry(entry), first = a.first_row(entry);
    x = static_cast<const T*>(a.x) + a.x_strides.offset(stored, in_entry, first);
    codes = a.codes + a.code_strides.offset(stored, in_entry, first);
    x_stride = a.x_strides.row;
    code_stride = a.code_strides.row;
    rows = a.rows_of(entry);
    scales = a.scales_of(entry, in_entry);
  }
  __device__ const T* x_of(const Place& place) const {
    return x + place.row * x_stride + place.chunk * chunk_columns;
  }
  __device__ std::uint8_t* codes_of(const Place& place) const {
    return codes + place.row * code_stride + place.chunk * chunk_columns;
  }
};

/// Eight columns of a row as they lie in memory; those past its end are 0.
template <typename T>
struct Chunk {
  static constexpr int vectors = static_cast<int>(chunk_columns * sizeof(T) / sizeof(uint4));
  uint4 raw[vectors];

  __device__ float operator[](int column) const {
    return to_float(reinterpret_cast<const T*>(raw)[column]);
  }
};

/// Chunks of a thread, one a slot, of the rows and chunks of a row that `place_of(slot)` says, if
/// it says that there is one; others are 0. All of them are under way before the first is used.
template <typename T, typename PlaceOf>
__device__ __forceinline__ void load_chunks(const Job& job, const Tile<T>& tile,
                                            const PlaceOf& place_of, Chunk<T> (&chunks)[slots]) {
  constexpr int vectors = Chunk<T>::vectors;
#pragma unroll
  for (int slot = 0; slot < slots; ++slot) {
#pragma unroll
    for (int i = 0; i < vectors; ++i) chunks[slot].raw[i] = make_uint4(0, 0, 0, 0);
  }
  if (job.is_aligned) {
#pragma unroll
    for (int slot = 0; slot < slots; ++slot) {
      const Place place = place_of(slot);
      if (!place.exists) continue;
      const auto* const from = reinterpret_cast<const uint4*>(tile.x_of(place));
#pragma unroll
      for (int i = 0; i < vectors; ++i) chunks[slot].raw[i] = from[i];
    }
    return;
  }
#pragma unroll
  for (int slot = 0; slot < slots; ++slot) {
    const Place place = place_of(slot);
    if (!place.exists) continue;
    const T* const from = tile.x_of(place);
    const int columns = job.columns_from(place.chunk);
    T* const to = reinterpret_cast<T*>(chunks[slot].raw);
#pragma unroll
    for (int i = 0; i < chunk_columns; ++i) {
      if (i < columns) to[i] = from[i];
    }
  }
}

/// Codes of a chunk, as four bytes twice.
template <Code code, typename T, typename ScaleOf>
__device__ __forceinline__ uint2 codes_of(const Chunk<T>& chunk, const ScaleOf& scale_of) {
  unsigned pairs[chunk_columns / 2];
#pragma unroll
  for (int i = 0; i < chunk_columns; i += 2) {
    pairs[i / 2] =
        pair_of_codes<code>(scale_of(i).quotient(chunk[i]), scale_of(i + 1).quotient(chunk[i + 1]));
  }
  return make_uint2(pairs[0] | pairs[1] << 16U, pairs[2] | pairs[3] << 16U);
}

template <typename T>
__device__ __forceinline__ void store_codes(const Job& job, const Tile<T>& tile, const Place& place,
                                            uint2 codes) {
  std::uint8_t* const to = tile.codes_of(place);
  if (job.is_aligned) {
    *reinterpret_cast<uint2*>(to) = codes;
    return;
  }
  const int columns = job.columns_from(place.chunk);
#pragma unroll
  for (int i = 0; i < chunk_columns; ++i) {
    const unsigned four = i < 4 ? codes.x : codes.y;
    if (i < columns) to[i] = static_cast<std::uint8_t>(four >> 8 * (i % 4));
  }
}

/// Codes of the chunks of all slots: `scale_of(slot, column)` is the scale of a column of a chunk.
template <typename T, typename PlaceOf, typename ScaleOf>
__device__ __forceinline__ void convert_chunks(const Job& job, const Tile<T>& tile,
                                               const PlaceOf& place_of,
                                               const Chunk<T> (&chunks)[slots],
                                               const ScaleOf& scale_of) {
  with_code(job.a.problem.codes.k, [&](auto known) {
#pragma unroll
    for (int slot = 0; slot < slots; ++slot) {
      const Place place = place_of(slot);
      if (!place.exists) continue;
      const auto of_column = [&](int column) { return scale_of(slot, column); };
      store_codes(job, tile, place, codes_of<known.value>(chunks[slot], of_column));
    }
  });
}

/// Magnitude of x as a maximum of finite ones takes it.
__device__ __forceinline__ float finite_magnitude(float x) {
  const float magnitude = fabsf(x);
  return magnitude <= 0x1.fffffep127F ? magnitude : 0.0F;
}

/// Largest finite magnitude. fmaxf drops a NaN; infinities are looked for where one shows.
template <typename T>
__device__ __forceinline__ float largest_of(const Chunk<T>& chunk) {
  float largest = 0.0F;
#pragma unroll
  for (int i = 0; i < chunk_columns; ++i) largest = fmaxf(largest, fabsf(chunk[i]));
  if (largest <= 0x1.fffffep127F) return largest;
  largest = 0.0F;
#pragma unroll
  for (int i = 0; i < chunk_columns; ++i) largest = fmaxf(largest, finite_magnitude(chunk[i]));
  return largest;
}

/// The scale of elements whose largest magnitude is `amax`.
__device__ __forceinline__ float scale_for(const Job& job, float amax) {
  const float scale = amax / job.largest;
  return scale == 0.0F ? 1.0F : scale;
}

}  // namespace quantise_chunks
}  // namespace attest
