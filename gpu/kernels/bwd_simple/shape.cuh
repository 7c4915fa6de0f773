#pragma once

#include <cstdint>

namespace attest {

/// Sizes of one of the two kernels. `own`: rows that a block sums gradients for, keys or query
/// rows, 16 a warp; `other`: rows of the other kind that it takes at a time. The names below them
/// are those that fa2_mma's products ask for: queries are its rows, keys what it loops over.
template <typename T_, int D_, int own_, int other_>
struct BwdShape {
  using T = T_;
  static constexpr int D = D_, own = own_, other = other_;
  static constexpr int warps = own / 16, threads = 32 * warps;
  static_assert(own % 16 == 0 && other % 16 == 0);

  static constexpr int Bc = other, row_tiles = 1;
  static constexpr bool keeps_queries = false;
  using Scores = float[1][other / 8][4];  ///< a warp's 16 rows of S or of dO V^T, see row_fragment
  using Outputs = float[1][D / 8][4];     ///< a warp's 16 rows of dQ, or of dK or dV

  /// Own and other tiles of two tensors, and two numbers for each other row.
  static constexpr std::int64_t shared_bytes =
      2 * (own + other) * D * static_cast<std::int64_t>(sizeof(T)) +
      2 * other * static_cast<std::int64_t>(sizeof(float));
};

}  // namespace attest
