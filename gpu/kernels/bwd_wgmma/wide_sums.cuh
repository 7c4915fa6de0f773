#pragma once

#include "gpu/kernels/bwd_wgmma/rows_out.cuh"
#include "gpu/kernels/bwd_wgmma/wide_group.cuh"

namespace attest {

/// Sums dV, or dK, of the block's keys (wide_pairs.cuh has the idea).
template <typename Shape, bool of_values>
struct BwdSumGroup : BwdWideGroup<Shape> {
  using Group = BwdWideGroup<Shape>;
  using Group::Bc;
  using Group::Br;
  using Group::p;
  using Group::panels;
  using Group::release;
  using Group::rings;
  using Group::steps;
  using Group::use;
  using Group::works;
  using T = typename Shape::T;
  typename Group::Result sums[panels];

  using Group::Group;

  __device__ __forceinline__ void run() {
    for (;; ++works) {
      rings.full_work(works).wait(bwd_full(works));
      const BwdWork& work = rings.work(works);
      if (work.count == BwdWork::none_left) break;
#pragma unroll
      for (auto& sum : sums) {
#pragma unroll
        for (float& x : sum) x = 0.0F;
      }
#pragma unroll 1
      for (int left = (work.past - work.first) * p.group; left > 0; --left) step();
      full().wait(bwd_full<1>(use()));
      store(work);
      release(empty());
      release(rings.empty_work(works));
    }
  }

 private:
  /// Tile of P, or of dS.
  __device__ __forceinline__ SharedAddress tile() const {
    return of_values ? rings.p() : rings.ds();
  }
  __device__ __forceinline__ Mbarrier full() const {
    return of_values ? rings.full_p() : rings.full_ds();
  }
  __device__ __forceinline__ Mbarrier empty() const {
    return of_values ? rings.empty_p() : rings.empty_ds();
  }

  __device__ __forceinline__ void step() {
    if constexpr (of_values) {
      rings.full_do(steps).wait(bwd_full<Shape::do_stages>(steps));
    } else {
      rings.full_q(steps).wait(bwd_full(steps));
    }
    full().wait(bwd_full<1>(use()));
    fence_products();
    issue(of_values ? rings.d_o(steps) : rings.q(steps));
    commit_products();
    wait_for_products<0>();
#pragma unroll
    for (auto& sum : sums) hold(sum);
    release(empty());
    release(of_values ? rings.empty_do(steps) : rings.empty_q(steps));
    ++steps;
  }
  /// sums += rows^T P, or rows^T dS.
  __device__ __forceinline__ void issue(SharedAddress rows) {
    const MatrixDescriptor weights = k_major_at(tile());
#pragma unroll
    for (int panel = 0; panel < panels; ++panel) {
      const MatrixDescriptor columns = mn_major_at(rows + panel * Shape::row_panel_bytes, Br);
#pragma unroll
      for (int i = 0; i < Br / 16; ++i) {
        issue_product<T, Major::mn, Major::k>(sums[panel], columns + mn_major_step(i),
                                              weights + k_major_step(i, Bc), true);
      }
    }
  }

  /// 64 columns of the sums to the tile, [key][column].
  __device__ __forceinline__ void store_transposed_sums(const typename Group::Result& sum) const {
    const float factor = of_values ? 1.0F : p.scale;
    const SharedAddress to = Group::row_in(tile());
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i) {
      unsigned words[4];
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int at = 8 * i + 2 * part;
        words[part] = packed<T>(sum[at] * factor, sum[at + 1] * factor);
      }
      store_transposed(to + i * 16 * panel_row_bytes, words);
    }
  }
  /// Writes the sums to memory by way of the tile, 64 columns at a time.
  __device__ __forceinline__ void store(const BwdWork& work) const {
    constexpr int barrier = of_values ? Shape::stores_dv : Shape::stores_dk;
    const Strides& strides = of_values ? p.dv_strides : p.dk_strides;
    const int columns = of_values ? p.value_columns : p.columns;
    T* const first = static_cast<T*>(of_values ? p.dv : p.dk) +
                     strides.offset(work.entry, work.kv_head, work.first_key_row + work.key);
#pragma unroll
    for (int panel = 0; panel < panels; ++panel) {
      store_transposed_sums(sums[panel]);
      sync_named(barrier, warpgroup_threads);
#pragma unroll 1
      for (int i = Group::thread(); i < 8 * Bc; i += warpgroup_threads) {
        const int key = i / 8, column = panel * panel_columns + 8 * (i % 8);
        if (work.key + key >= work.keys || column >= columns) continue;
        store_eight(first + key * strides.row + column,
                    load_16_bytes(tile() + swizzled_chunk(key, i % 8)), columns - column);
      }
      sync_named(barrier, warpgroup_threads);
    }
  }
};

}  // namespace attest
