#pragma once

#include <cstdint>
#include <type_traits>

#include "gpu/primitives/async_copy.cuh"
#include "gpu/primitives/head_rows.cuh"

namespace attest {

/// A tile [rows, dim] of 8-bit, 16-bit or fp32 elements in shared memory, whose rows matrix loads
/// read eight at a time, 16 bytes each. Chunks of 16 bytes are permuted within groups of eight so
/// that the eight rows of a load lie in different banks: chunk c of row r is at c xor (r mod 8),
/// or, where a row is no multiple of 128 bytes, in groups of four at c xor (r / 2 mod 4), because
/// two such rows share a line of banks.
template <typename T, int dim>
struct SwizzledTile {
  static_assert(sizeof(T) <= 4 && sizeof(T) * dim % 64 == 0, "rows of whole 64 bytes");
  static constexpr int chunk = 16 / static_cast<int>(sizeof(T));  ///< elements that stay together
  static constexpr int chunks = dim / chunk;
  static constexpr int group = chunks % 8 == 0 ? 8 : 4;  ///< chunks that change places

  T* first;

  /// Chunks that hold `columns` columns.
  static __device__ int chunks_of(int columns) { return (columns + chunk - 1) / chunk; }
  /// Offset of chunk `c` of row `r`, in elements from the start.
  static __device__ int offset(int r, int c) {
    return r * dim + (c ^ (group == 8 ? r & 7 : r >> 1 & 3)) * chunk;
  }
  __device__ T* at(int r, int c) const { return first + offset(r, c); }
};

/// Offsets by which a lane loads blocks of 16 rows and 32 bytes of swizzled tiles, four matrices of
/// 8 rows and 16 bytes by one load_matrices(): 16 columns of 16-bit elements, 8 of fp32, 32 of
/// codes. Where the block starts only flips bits of one offset, which is computed once.
template <typename T, int dim>
struct SwizzledLane {
  using Tile = SwizzledTile<T, dim>;
  static constexpr int size = static_cast<int>(sizeof(T));
  static constexpr int columns = 2 * Tile::chunk;  ///< of a block
  static constexpr int blocks = Tile::group / 2;   ///< whose places are permuted

  /// The address of lane `lane`, in bytes from the start of a tile. Matrices 0 and 1 are the upper
  /// and the lower half of the first chunk: the order of a left operand, and of a transposed right
  /// one.
  static __device__ int offset(int lane) { return Tile::offset(lane % 16, lane / 16) * size; }
  /// Matrices 0 and 1 are the left and the right half of the first 8 rows: the order of a right
  /// operand whose rows are its columns, so that what one mma takes lies in neighbouring registers.
  static __device__ int offset_by_rows(int lane) {
    return Tile::offset(lane % 8 + lane / 16 * 8, lane / 8 % 2) * size;
  }
  /// Address of the lane's part of the block at rows [row, row + 16), columns [columns k, columns k
  /// + columns); `row` is a multiple of 16.
  static __device__ SharedAddress at(SharedAddress tile, int offset, int row, int k) {
    return tile + (offset ^ k % blocks * 32) + (row * dim + k / blocks * (columns * blocks)) * size;
  }
};

/// Starts copies of rows [begin, begin + rows) of `from`, `columns` <= dim elements each, to a
/// tile; rows that do not exist become zeros, and chunks past `columns` are left alone:
/// clear_columns() has made them zeros. All threads of the block take part. Rows
/// may lie anywhere: what cannot be copied in 4, 8 or 16 bytes is stored at once, and the barrier
/// after the wait serves that too. No commit inside. `width`: widest_copy() of the rows; of `from`
/// row(n), existing(begin, rows) and first are asked.
template <typename Rows, typename T, int dim>
__device__ __attribute__((noinline)) void load_swizzled_async(const Rows& from, std::int64_t begin,
                                                              int rows, int columns, int width,
                                                              const SwizzledTile<T, dim>& tile) {
  using Tile = SwizzledTile<T, dim>;
  const int existing = from.existing(begin, rows), chunks = Tile::chunks_of(columns);
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < rows * chunks;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / chunks, c = i % chunks, column = c * Tile::chunk;
    T* const to = tile.at(row, c);
    const int left = row < existing ? columns - column : 0;  // elements of the chunk that exist
    const T* const source = left > 0 ? from.row(begin + row) + column : from.first;
    const auto copy = [&](auto bytes) {
      constexpr int each = decltype(bytes)::value / static_cast<int>(sizeof(T));
#pragma unroll 1
      for (int e = 0; e < Tile::chunk; e += each) {
        const bool exists = e < left;
        AsyncCopies::copy_or_zero<decltype(bytes)::value>(to + e, exists ? source + e : from.first,
                                                          exists);
      }
    };
    if (width == 16)
      copy(std::integral_constant<int, 16>{});
    else if (width == 8)
      copy(std::integral_constant<int, 8>{});
    else if (width == 4)
      copy(std::integral_constant<int, 4>{});
    else
      for (int e = 0; e < Tile::chunk; ++e) to[e] = e < left ? source[e] : T(0.0F);
  }
}

/// Copies one tile after the other, all of whose rows exist and are copied in 16 bytes. A thread
/// copies the same chunk of every group, of every so manieth row: one address and one place serve
/// all of its copies.
template <int rows, int threads, typename T, int dim>
class TileStream {
 public:
  using Tile = SwizzledTile<T, dim>;

  /// The first tile begins with row `begin`.
  __device__ __forceinline__ TileStream(const RowView<const T>& from, std::int64_t begin)
      : next_(from.row(begin + row()) + chunk() * Tile::chunk), stride_(from.stride) {}

  /// Starts the copies of the next tile to the tile at `to`.
  __device__ __forceinline__ void copy(SharedAddress to, int columns) const {
    const T* source = next_;
    const SharedAddress target = to + Tile::offset(row(), chunk()) * size;
#pragma unroll
    for (int i = 0; i < rows; i += distance) {
      if (rows % distance != 0 && row() + i >= rows) break;
#pragma unroll
      for (int first = 0; first < Tile::chunks; first += Tile::group) {
        const int column = first * Tile::chunk;
        if (chunk() * Tile::chunk + column < columns)
          AsyncCopies::copy<16>(target + (i * dim + column) * size, source + column);
      }
      source += distance * stride_;
    }
  }
  __device__ __forceinline__ void advance() {
    next_ += rows * stride_;
  }

 private:
  static constexpr int size = static_cast<int>(sizeof(T));
  static constexpr int distance = threads / Tile::group;  // of rows that a thread copies
  static_assert(distance % 8 == 0, "their chunks lie at the same place");
  static __device__ int row() {
    return static_cast<int>(threadIdx.x) / Tile::group;
  }
  static __device__ int chunk() {
    return static_cast<int>(threadIdx.x) % Tile::group;
  }

  const T* next_;
  std::int64_t stride_;
};

/// Zeros in the chunks past `columns` of the first `rows` rows of a tile.
template <typename T, int dim>
__device__ void clear_columns(const SwizzledTile<T, dim>& tile, int rows, int columns) {
  using Tile = SwizzledTile<T, dim>;
  const int first = Tile::chunks_of(columns), chunks = Tile::chunks - first;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < rows * chunks;
       i += static_cast<int>(blockDim.x)) {
    *reinterpret_cast<uint4*>(tile.at(i / chunks, first + i % chunks)) = {};
  }
}

}  // namespace attest
