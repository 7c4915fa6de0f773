#pragma once

#include <cstdint>
#include <type_traits>

#include "gpu/primitives/async_copy.cuh"
#include "gpu/primitives/head_rows.cuh"

namespace attest {

/// A tile [rows, dim] of 16-bit elements in shared memory, whose rows matrix loads read eight at a
/// time, 16 bytes each. Chunks of 16 bytes are permuted within a row so that the eight rows of a
/// load lie in different banks: chunk c of row r is at c xor (r mod 8), or, where a row is no
/// multiple of 128 bytes, at c xor (r / 2 mod 4), because two such rows share a line of banks.
template <typename T, int dim>
struct SwizzledTile {
  static_assert(sizeof(T) == 2 && dim % 32 == 0, "rows of whole 64 bytes");
  static constexpr int chunk = 16 / static_cast<int>(sizeof(T));  ///< elements that stay together
  static constexpr int chunks = dim / chunk;

  T* first;

  /// Address of chunk `c` of row `r`.
  __device__ T* at(int r, int c) const {
    const int place = chunks % 8 == 0 ? c ^ (r & 7) : c ^ (r >> 1 & 3);
    return first + r * dim + place * chunk;
  }
};

/// Starts copies of rows [begin, begin + rows) of `from`, `columns` <= dim elements each, to a
/// tile; columns and rows that do not exist become zeros. All threads of the block take part. Rows
/// that cannot be copied in 4, 8 or 16 bytes are stored at once: the barrier after the wait serves
/// them too. No commit inside. `width`: widest_copy() of the rows.
template <typename T, int dim>
__device__ void load_swizzled_async(const RowView<const T>& from, std::int64_t begin, int rows,
                                    int columns, int width, const SwizzledTile<T, dim>& tile) {
  using Tile = SwizzledTile<T, dim>;
  const int existing = from.existing(begin, rows);
  for (int i = static_cast<int>(threadIdx.x); i < rows * Tile::chunks;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / Tile::chunks, c = i % Tile::chunks, column = c * Tile::chunk;
    T* const to = tile.at(row, c);
    const int left = row < existing ? columns - column : 0;  // elements of the chunk that exist
    const T* const source = left > 0 ? from.row(begin + row) + column : from.first;
    const auto copy = [&](auto bytes) {
      constexpr int each = decltype(bytes)::value / static_cast<int>(sizeof(T));
#pragma unroll
      for (int e = 0; e < Tile::chunk; e += each) {
        const bool exists = e < left;
        AsyncCopies::copy_or_zero<decltype(bytes)::value>(to + e, exists ? source + e : source,
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

}  // namespace attest
