#pragma once

// The chunks of a row: what each leaves in the workspace, and the sum of it.
//
//   of chunk p    acc = sum of weights 2^(c s - r_p) times V, l_p = sum of weights, both fp32
//   merged        R = max r_p, w_p = 2^(r_p - R):  O = sum w_p acc_p / sum w_p l_p,
//                 LSE = R ln 2 + ln sum w_p l_p
//
// A chunk that sees no key leaves zeros and r_p = -FLT_MAX, and adds exactly nothing. Chunks are
// added in their order, whoever adds them.

#include <cfloat>
#include <cstdint>

#include "gpu/kernels/decode_mma/chunks.cuh"
#include "gpu/primitives/cluster.cuh"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/dependent_launch.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/online_softmax.cuh"

namespace attest {

/// acc [parts, rows, D] and {r, l} [parts, rows, 2] in the workspace. A part is a chunk, and rows
/// are those of full lengths, [batch, query_heads, query_len]. KeySplitRule::stream has two parts a
/// block, with the rows of a tile: what continues a row tile of the block before, and what the next
/// block continues.
template <int D>
struct DecodePartials {
  float* acc;
  float2* sums;
  std::int64_t rows;

  static __device__ DecodePartials of(const ForwardArguments& a, const DecodeSizes& sizes) {
    auto* const first = static_cast<float*>(a.workspace);
    return {first, reinterpret_cast<float2*>(first + sizes.partial_rows() * D),
            sizes.is_stream ? sizes.tile_rows
                            : std::int64_t{sizes.batch} * sizes.query_heads * sizes.queries};
  }
  __device__ float* acc_of(int part, std::int64_t row) const {
    return acc + (part * rows + row) * D;
  }
  __device__ float2* sums_of(int part, std::int64_t row) const { return sums + part * rows + row; }
};

/// Size of the workspace that they take.
inline std::size_t decode_partial_bytes(const Problem& problem, const DecodeSizes& sizes) {
  return static_cast<std::size_t>(sizes.partial_rows() * (problem.output_dim() + 2)) *
         sizeof(float);
}

/// Loads what other blocks wrote while this one ran: past the L1 cache, which may hold what was
/// there before.
template <typename Vector>
__device__ Vector load_from_l2(const Vector* address) {
#ifdef __CUDACC__
  return __ldcg(address);
#else
  return *address;
#endif
}

/// A lane's columns of a row that a warp holds: D / 32 neighbours.
template <int D>
struct RowPart {
  static constexpr int columns = D / 32;
  static constexpr int pairs = columns / 2;
  float2 x[pairs] = {};

  template <bool from_l2 = false>
  static __device__ __forceinline__ RowPart load(const float* row, int lane) {
    RowPart part;
#pragma unroll
    for (int i = 0; i < pairs; i += 2) {
      if constexpr (pairs == 1) {
        const auto* const from = reinterpret_cast<const float2*>(row) + lane;
        part.x[0] = from_l2 ? load_from_l2(from) : *from;
      } else {
        const auto* const from = reinterpret_cast<const float4*>(row + lane * columns) + i / 2;
        const float4 four = from_l2 ? load_from_l2(from) : *from;
        part.x[i] = {four.x, four.y};
        part.x[i + 1] = {four.z, four.w};
      }
    }
    return part;
  }
  __device__ __forceinline__ void store(float* row, int lane) const {
#pragma unroll
    for (int i = 0; i < pairs; ++i) {
      *reinterpret_cast<float2*>(row + lane * columns + 2 * i) = x[i];
    }
  }
  __device__ __forceinline__ void add(float weight, const RowPart& other) {
#pragma unroll
    for (int i = 0; i < pairs; ++i) {
      x[i].x = fmaf(weight, other.x[i].x, x[i].x);
      x[i].y = fmaf(weight, other.x[i].y, x[i].y);
    }
  }
};

/// Place of a row of an entry in O and LSE, and among partial results.
template <typename T>
struct DecodeRow {
  using Element = T;
  T* o;
  float* lse;
  std::int64_t number;   ///< of DecodePartials::rows
  int first_block = -1;  ///< DecodeUnit::first_block under KeySplitRule::stream

  /// Row `n` of those that share a kv head: query n / group of head n % group of them.
  __device__ DecodeRow(const ForwardArguments& a, const DecodeSizes& sizes, const DecodeUnit& unit,
                       int n) {
    const int query = sizes.by_group.quotient(n),
              head = unit.kv_head * sizes.group + n - query * sizes.group;
    const bool is_packed = a.query_starts != nullptr;
    const std::int64_t in_tensor = unit.of.q_start + query;
    o = static_cast<T*>(a.o) + a.o_strides.offset(is_packed ? 0 : unit.entry, head, in_tensor);
    number = (std::int64_t{unit.entry} * sizes.query_heads + head) * sizes.queries + query;
    const std::int64_t of_lse =
        is_packed ? std::int64_t{head} * a.query_starts[sizes.batch] + in_tensor : number;
    lse = a.lse + of_lse;
    if (!sizes.is_stream) return;
    first_block = unit.first_block;
    number = n % sizes.tile_rows;
  }
  /// Place of chunk `chunk` of the row among the parts.
  __device__ int part(int chunk) const {
    if (first_block < 0) return chunk;
    return chunk == 0 ? 2 * first_block + 1 : 2 * (first_block + chunk);
  }
  /// An element of O as it is stored.
  __device__ float scaled(float x, int /*column*/) const { return x; }
};

/// A row as its parts are added. `top` is their largest reference before the first is added.
template <int D>
struct MergedRow {
  float top = -FLT_MAX, l = 0.0F;
  RowPart<D> acc;

  /// Weight of a part with reference r.
  __device__ __forceinline__ float weight_of(float r) const { return HardwareExp2::of(r - top); }
  __device__ __forceinline__ void add(float weight, float l_of_part,
                                      const RowPart<D>& acc_of_part) {
    l = fmaf(weight, l_of_part, l);
    acc.add(weight, acc_of_part);
  }
  /// Stores it as what a chunk has of a row.
  __device__ __forceinline__ void leave(const DecodePartials<D>& to, int part, std::int64_t row,
                                        int lane) const {
    acc.store(to.acc_of(part, row), lane);
    if (lane == 0) *to.sums_of(part, row) = {top, l};
  }
  /// Stores the row in shared memory: O, then r and l.
  __device__ __forceinline__ void leave(float* to, int lane) const {
    acc.store(to, lane);
    if (lane == 0) *reinterpret_cast<float2*>(to + D) = {top, l};
  }
  /// Divides by the sum of weights, rounds and stores the lane's columns of O; and LSE.
  template <typename Row>
  __device__ __forceinline__ void store(const Row& to, int lane) const {
    const float factor = 1.0F / divisor_of(l);
    const int first = lane * RowPart<D>::columns;
    auto* const o = reinterpret_cast<unsigned*>(to.o + first);
#pragma unroll
    for (int i = 0; i < RowPart<D>::pairs; ++i) {
      o[i] = packed<typename Row::Element>(to.scaled(acc.x[i].x * factor, first + 2 * i),
                                           to.scaled(acc.x[i].y * factor, first + 2 * i + 1));
    }
    if (lane == 0) *to.lse = log_sum_exp2(top, l);
  }
};

/// Parts of a row that chunks left in the workspace.
template <typename Row, int D>
struct WorkspaceParts {
  const DecodePartials<D>& partials;
  const Row& row;

  __device__ float2 sums(int chunk) const {
    return load_from_l2(partials.sums_of(row.part(chunk), row.number));
  }
  __device__ RowPart<D> acc(int chunk, int lane) const {
    return RowPart<D>::template load<true>(partials.acc_of(row.part(chunk), row.number), lane);
  }
};

/// Parts of a row that the blocks of a cluster left in their shared memory, each at the same place.
template <int D>
struct ClusterParts {
  float* left;  ///< by this block: O, then r and l

  __device__ float2 sums(int chunk) const {
    return *reinterpret_cast<const float2*>(Cluster::in_block(left, chunk) + D);
  }
  __device__ RowPart<D> acc(int chunk, int lane) const {
    return RowPart<D>::load(Cluster::in_block(left, chunk), lane);
  }
};

/// Merges the chunks of a row; all lanes of a warp. What `at_once` chunks left is loaded at once,
/// and the sums of 32: a load takes as long as a hundred additions.
template <int D, int at_once, typename Parts>
__device__ __forceinline__ MergedRow<D> merge_chunks(const Parts& parts, int chunks) {
  static_assert(32 % at_once == 0);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float2 mine{-FLT_MAX, 0.0F};  // r and l of chunk 32 n + lane
  if (lane < chunks) mine = parts.sums(lane);
  RowPart<D> acc[at_once];
  const auto load = [&](int first) {
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      if (first + i < chunks) acc[i] = parts.acc(first + i, lane);
    }
  };
  load(0);
  MergedRow<D> sum;
  sum.top = mine.x;
  for (int p = lane + 32; p < chunks; p += 32) sum.top = fmaxf(sum.top, parts.sums(p).x);
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    sum.top = fmaxf(sum.top, __shfl_xor_sync(0xffffffffU, sum.top, distance));
  }
#pragma unroll 1
  for (int first = 0; first < chunks; first += at_once) {
    if (first > 0) {
      load(first);
      if (first % 32 == 0) mine = parts.sums(min(first + lane, chunks - 1));
    }
    const float weight = sum.weight_of(mine.x);
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      const int owner = (first + i) % 32;
      const float w = __shfl_sync(0xffffffffU, weight, owner),
                  l = __shfl_sync(0xffffffffU, mine.y, owner);
      if (first + i < chunks) sum.add(w, l, acc[i]);
    }
  }
  return sum;
}

/// Merges what the workspace holds of a row, and stores the answer.
template <typename Row, int D>
__device__ __forceinline__ void merge_in_workspace(const DecodePartials<D>& partials,
                                                   const Row& row, int chunks) {
  constexpr int at_once = D > 128 ? 8 : 16;
  const WorkspaceParts<Row, D> parts{partials, row};
  merge_chunks<D, at_once>(parts, chunks).store(row, static_cast<int>(threadIdx.x) % 32);
}

/// Merges the chunks of all rows that have several, a warp a row. Rows are numbered as with full
/// lengths.
template <Executor home, typename Row, int D, typename Arguments>
__global__ void __launch_bounds__(128) decode_merge(Arguments a, DecodeSizes sizes) {
  wait_for_predecessor();
  const auto partials = DecodePartials<D>::of(a, sizes);
  const int n = static_cast<int>(blockIdx.x * 4 + threadIdx.x / 32);
  if (n >= partials.rows) return;
  const int query = n % sizes.queries, head = n / sizes.queries % sizes.query_heads;
  DecodeUnit unit;
  unit.entry = n / sizes.queries / sizes.query_heads;
  unit.of = DecodeEntry(a, sizes, unit.entry);
  unit.kv_head = head / sizes.group;
  if (query >= unit.of.queries || unit.of.all_chunks() < 2) return;
  const Row row(a, sizes, unit, query * sizes.group + head % sizes.group);
  merge_in_workspace(partials, row, unit.of.all_chunks());
}

}  // namespace attest
