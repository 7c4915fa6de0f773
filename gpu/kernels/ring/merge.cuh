#pragma once

// Merges what a rank's launches gave: (O_p, LSE_p) of some of its rows each.
//
// Idea
//   A thread has eight columns of a row: one load of 16 bytes a part. It reads the row's LSE_p
//   twice, first for the largest, M, then for the weights exp(LSE_p - M), and adds weight times O_p
//   in fp32, in the order of the steps. Threads of a row form the same weights; there are few
//   parts.
// Empty parts
//   LSE_p = -infinity: the part has seen nothing and is not read. No part at all: O = 0, LSE =
//   -infinity. A NaN LSE_p is dropped by fmaxf and comes back as a NaN weight.
#include <cstdint>

#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/natural_log.cuh"
#include "gpu/primitives/online_softmax.cuh"

namespace attest {

/// e^x by ex2.approx of x log2(e), which the executor repeats bit for bit.
struct MergeExp {
  static __device__ float of(float x) { return HardwareExp2::of(x * 1.44269504F); }
};

inline constexpr int merge_columns = 8;     ///< of a thread: 16 bytes
inline constexpr int most_ring_parts = 96;  ///< what parameters of a kernel have room for

/// Result of one launch of a rank.
struct RingPart {
  std::int64_t first_row = 0, rows = 0;  ///< of the rank
  const void* o = nullptr;               ///< [heads, rows of the rank, pitch]
  const float* lse = nullptr;            ///< [heads, rows]
};

struct RingMerge {
  RingPart parts[most_ring_parts] = {};
  int count = 0;
  std::int64_t heads = 0, rows = 0;  ///< heads of all entries
  std::int64_t pitch = 0;            ///< from row to row of every O: a multiple of 8
  std::int64_t columns = 0;          ///< of a row; there are none behind them
  void* o = nullptr;                 ///< [heads, rows, pitch]
  float* lse = nullptr;              ///< [heads, rows]
};

/// Eight columns of a row, of which the first `count` are there.
template <typename T>
struct EightColumns {
  uint4 bits{};

  __device__ void load(const T* from, std::int64_t count) {
    if (count >= merge_columns) {
      bits = *reinterpret_cast<const uint4*>(from);
      return;
    }
#pragma unroll
    for (int c = 0; c < merge_columns; ++c) {
      if (c < count) (*this)[c] = from[c];
    }
  }
  __device__ T& operator[](int c) {
    return reinterpret_cast<T*>(&bits)[c];
  }
  __device__ void store(T* to, std::int64_t count) {
    if (count >= merge_columns) {
      *reinterpret_cast<uint4*>(to) = bits;
      return;
    }
#pragma unroll
    for (int c = 0; c < merge_columns; ++c) {
      if (c < count) to[c] = (*this)[c];
    }
  }
};

template <Executor home, typename T>
__global__ void ring_merge(const __grid_constant__ RingMerge m) {
  const std::int64_t threads_a_row = m.pitch / merge_columns;
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t row = i / threads_a_row % m.rows, head = i / threads_a_row / m.rows;
  if (head >= m.heads) return;
  const std::int64_t column = i % threads_a_row * merge_columns;
  const std::int64_t first = (head * m.rows + row) * m.pitch + column;

  const auto lse_of = [&](const RingPart& part) {
    const std::int64_t n = row - part.first_row;
    return n < 0 || n >= part.rows ? -INFINITY : part.lse[head * part.rows + n];
  };
  float M = -INFINITY;
  for (int p = 0; p < m.count; ++p) M = fmaxf(M, lse_of(m.parts[p]));
  float L = 0.0F;
  float sums[merge_columns] = {};
  for (int p = 0; p < m.count; ++p) {
    const float lse = lse_of(m.parts[p]);
    if (lse == -INFINITY) continue;
    const float weight = exp_below<MergeExp>(lse, M);
    L += weight;
    EightColumns<T> part;
    part.load(static_cast<const T*>(m.parts[p].o) + first, m.columns - column);
#pragma unroll
    for (int c = 0; c < merge_columns; ++c) sums[c] = fmaf(weight, to_float(part[c]), sums[c]);
  }
  EightColumns<T> result;
#pragma unroll
  for (int c = 0; c < merge_columns; ++c) result[c] = from_float<T>(sums[c] / divisor_of(L));
  result.store(static_cast<T*>(m.o) + first, m.columns - column);
  if (column == 0) m.lse[head * m.rows + row] = M + ln_of(L);
}

template <Executor home>
void merge_parts(const RingMerge& m, ElementType type, Device& device) {
  constexpr std::int64_t threads = 256;
  const std::int64_t all = m.heads * m.rows * (m.pitch / merge_columns);
  if (all == 0) return;
  with_sixteen_bits(type, [&]<typename T>(std::type_identity<T>) {
    launch(ring_merge<home, T>, dim3(static_cast<unsigned>((all + threads - 1) / threads)),
           dim3(static_cast<unsigned>(threads)), 0, device, m);
  });
}

}  // namespace attest
