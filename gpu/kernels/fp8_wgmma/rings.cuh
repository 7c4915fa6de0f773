#pragma once

#include "gpu/kernels/fa3_wgmma/rings.cuh"
#include "gpu/primitives/launch.cuh"

namespace attest {

/// Tiles of V as it came, under the names that a ring of V has for whoever loads: it fills them,
/// and the warps that transpose are their readers.
template <typename Shape>
struct Fp8RawRings : Fa3Rings<Shape> {
  __device__ __forceinline__ explicit Fp8RawRings(unsigned char* shared)
      : Fa3Rings<Shape>(shared) {}

  __device__ SharedAddress v_tile(int stage) const {
    return this->base + Shape::raw_v_at + stage * Shape::kv_bytes;
  }
  __device__ Mbarrier full_v(int stage) const { return raw_barrier(stage); }
  __device__ Mbarrier empty_v(int stage) const { return raw_barrier(Shape::v_stages + stage); }

  /// Whoever loads says that no tile comes in this stage, nor any other.
  __device__ void end(int stage) const {
    ends()[stage] = 1;
    full_v(stage).arrive();
  }
  __device__ bool is_end(int stage) const { return ends()[stage] != 0; }

  /// One thread, before a barrier of the block; also those of the other rings.
  __device__ void init() const {
    for (int stage = 0; stage < Shape::v_stages; ++stage) {
      full_v(stage).init(1);
      empty_v(stage).init(Shape::transposing_warps);
      ends()[stage] = 0;
    }
    Fa3Rings<Shape>::init();
  }

 private:
  /// Not by `first`, whose 64 bits would stay in registers.
  static __device__ int* ends() {
    return reinterpret_cast<int*>(dynamic_shared<unsigned char>() + Shape::ends_at);
  }
  __device__ Mbarrier raw_barrier(int i) const {
    return Mbarrier(this->base + (Shape::raw_barriers_at + 8 * i));
  }
};

}  // namespace attest
