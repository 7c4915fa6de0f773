#pragma once

#include "gpu/primitives/codes.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/shared_address.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest {

/// A warp forms its 16 rows of S = Q K^T once more, by mma.sync of fp16, which every code of e4m3
/// is. Bits are not those of wgmma of codes: the sum keeps more. `q` is the warp's rows of a tile,
/// `k` a tile of Bc rows, one panel each, as in wgmma_descriptor.hpp. Bc is a multiple of 32.
///
/// A matrix load moves pairs of codes, so that a lane has columns 16 i + 4 t to 16 i + 4 t + 3 of
/// both factors where a product of 16-bit numbers has 2 t, 2 t + 1, 2 t + 8 and 2 t + 9. A sum does
/// not depend on it.
template <int D, int Bc>
__device__ __forceinline__ void form_scores_of_codes_again(float (&s)[Bc / 2], SharedAddress q,
                                                           SharedAddress k, int lane) {
  static_assert(D <= panel_row_bytes && Bc % 32 == 0);
#pragma unroll
  for (float& x : s) x = 0.0F;
#pragma unroll 1
  for (int step = 0; step < D / 16; ++step) {
    unsigned rows[2], a[4];
    load_matrices(rows, q + swizzled_chunk(lane % 16, step));
    numbers_of_codes<__half, Code::e4m3>(rows[0], a[0], a[2]);
    numbers_of_codes<__half, Code::e4m3>(rows[1], a[1], a[3]);
#pragma unroll
    for (int block = 0; block < Bc / 32; ++block) {
      unsigned keys[4];
      load_matrices(keys, k + swizzled_chunk(32 * block + lane, step));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = 4 * (4 * block + i);
        unsigned b[2];
        numbers_of_codes<__half, Code::e4m3>(keys[i], b[0], b[1]);
        float d[4] = {s[at], s[at + 1], s[at + 2], s[at + 3]};
        mma_16x8x16<__half>(d, a, b);
#pragma unroll
        for (int e = 0; e < 4; ++e) s[at + e] = d[e];
      }
    }
  }
}

}  // namespace attest
