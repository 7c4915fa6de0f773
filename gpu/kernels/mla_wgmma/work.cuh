#pragma once

#include "core/operations/forward_arguments.hpp"
#include "gpu/kernels/decode_mma/chunks.cuh"
#include "gpu/kernels/mla_wgmma/shape.cuh"
#include "gpu/primitives/mbarrier.cuh"
#include "gpu/primitives/tma.cuh"

namespace attest {

/// Parameters of a launch, for its blocks: a `const __grid_constant__` parameter, since the copy
/// engine reads the maps in place.
struct MlaParameters {
  TensorMap k;         ///< boxes of box_rows keys
  TensorMap k_eights;  ///< boxes of 8 keys: where another entry's keys follow at once
  ForwardArguments a;
  DecodeSizes sizes;
  int box_rows;     ///< divides a tile and, with pages, a page
  float c;          ///< scale * log2(e), or 1 with factor
  float factor;     ///< scores are multiplied by it first; 1 where c is positive
  Divisor by_item;  ///< by the keys of a list's item
};

/// One unit as a warp found it: a tile of rows and a chunk of keys.
struct alignas(16) MlaWork {
  DecodeUnit unit;
  int exists = 0;      ///< 0: there are no more
  int first_row = 0;   ///< of the packed rows: query n / group of head n % group
  int rows = 0;        ///< that there are
  int first_key = 0;   ///< of tile 0
  int past_key = 0;    ///< of the chunk; what some row sees ends at or before tiles * 64 keys
  int all_see_to = 0;  ///< keys below it are seen by every row
  int tiles = 0;       ///< of keys

  __device__ void take(const DecodeSizes& sizes, const DecodeUnit& of) {
    const DecodeEntry& entry = of.of;
    unit = of;
    first_row = of.row_tile * sizes.tile_rows;
    rows = min(sizes.tile_rows, entry.queries * sizes.group - first_row);
    first_key = of.chunk_first;
    past_key = of.chunk_past;
    const int last_query = (first_row + rows - 1) / sizes.group;
    const int to = min(past_key, entry.reach.past_key(last_query));
    all_see_to = min(to, entry.reach.past_key(first_row / sizes.group));
    tiles = to > first_key ? (to - first_key + 63) / 64 : 0;
  }
  /// Keys of a tile that the entry has.
  __device__ int keys_of(int tile) const {
    return min(64, unit.of.reach.keys - first_key - 64 * tile);
  }
};

/// Number of the thread in its block. Asked anew every time: what follows from it would fill
/// registers throughout the loop over key tiles.
__device__ __forceinline__ unsigned thread_asked_anew() {
  unsigned thread = threadIdx.x;
#ifdef __CUDACC__
  asm volatile("" : "+r"(thread));
#endif
  return thread;
}

/// Places of a block's tiles and barriers. Every panel of a stage has a barrier on which its bytes
/// arrive; every part one at which its last reader arrives.
template <typename Shape>
struct MlaShared {
  unsigned char* first;
  SharedAddress base;  ///< shared address of `first`

  /// `shared` is aligned to swizzle_bytes.
  __device__ __forceinline__ explicit MlaShared(unsigned char* shared)
      : first(shared), base(shared) {}

  __device__ SharedAddress q_panel(int panel) const {
    return base + (Shape::q_at + panel * Shape::panel_bytes);
  }
  __device__ SharedAddress k_tile(int stage) const {
    return base + (Shape::k_at + stage * Shape::tile_bytes);
  }
  __device__ SharedAddress weights() const { return base + Shape::weights_at; }
  /// References after a group's last tile, of each row; and its sums of weights at the end.
  __device__ float* references(int group) const {
    return reinterpret_cast<float*>(first + Shape::references_at) + group * Shape::rows;
  }
  __device__ float* sums(int group) const {
    return reinterpret_cast<float*>(first + Shape::sums_at) + group * Shape::rows;
  }
  /// Description of the block's `n`th unit.
  __device__ MlaWork& work(unsigned n) const {
    static_assert(sizeof(MlaWork) <= Shape::work_bytes);
    return *reinterpret_cast<MlaWork*>(first + Shape::works_at +
                                       static_cast<int>(n % 2) * Shape::work_bytes);
  }

  /// Bits of the keys that are seen of the stage's `n`th tile, with lists.
  __device__ uint2& seen(int stage, unsigned n) const {
    return reinterpret_cast<uint2*>(first + Shape::seen_at)[2 * stage + static_cast<int>(n % 2)];
  }

  __device__ Mbarrier full(int stage, int panel) const {
    return barrier(stage * Shape::panels + panel);
  }
  __device__ Mbarrier empty(int stage, int part) const {
    return barrier(Shape::stages * Shape::panels + stage * Shape::parts + part);
  }
  __device__ Mbarrier work_full(unsigned n) const {
    return barrier(Shape::barriers - 4 + static_cast<int>(n % 2));
  }
  __device__ Mbarrier work_empty(unsigned n) const {
    return barrier(Shape::barriers - 2 + static_cast<int>(n % 2));
  }

  /// One thread, before a barrier of the block.
  __device__ void init() const {
#ifdef __CUDACC__
    if (base.value() % swizzle_bytes != 0) __trap();  // no block has ever begun elsewhere
#endif
    for (int stage = 0; stage < Shape::stages; ++stage) {
      for (int panel = 0; panel < Shape::panels; ++panel)
        full(stage, panel).init(Shape::arrivals_of(panel));
      for (int part = 0; part < Shape::parts; ++part) empty(stage, part).init(4);
    }
    for (unsigned n = 0; n < 2; ++n) {
      work_full(n).init(1);
      work_empty(n).init(4 * Shape::consumers + Shape::parts);  // and the loading warps
    }
    fence_barrier_init();
  }

 private:
  __device__ Mbarrier barrier(int i) const {
    return Mbarrier(base + (Shape::barriers_at + 8 * i));
  }
};

}  // namespace attest
