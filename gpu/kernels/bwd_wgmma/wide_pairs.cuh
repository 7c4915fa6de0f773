#pragma once

// The kernel for head dims past 128, and what its first warpgroup does.
//
// Idea
//   dV and dK of 80 keys fill the registers of a warpgroup each. So each has one that does nothing
//   else (wide_sums.cuh), and a third forms S, dP and from them P and dS of all pairs, and dQ.
//   Transposed, dV^T = dO^T P and dK^T = Q^T dS have columns as rows of a product, which come in
//   64s, and keys as columns, which come in 8s: so a tile may have 80 keys, and dQ passes through
//   shared memory and the L2 cache less often than with 64.
//
//   pairs                                          values             keys
//     issue dP
//     P = 2^(c s - LSE2), under dP  ---- P --->      dV^T += dO^T P
//     dS = P (dP - delta)           ---- dS -------------------->       dK^T += Q^T dS
//     issue 64 columns of dQ = dS K, and S of the next step behind them
//     dQ to shared memory, from where it is added to its sums; the other columns alike
//   P and dS are [key][row] in shared memory, a tile each, in which dV and dK leave at the end.
//
// Resident, head dim 256 (192)
//   shared     K, V [80, 256] ([96, 192]), Q [2, 64, 256], dO [1 (2), 64, 256], P, dS [80, 64],
//              dQ [3, 64, 32] in fp32, LSE2 and delta
//   registers  S, dP [64, 80] and 64 columns of dQ; dV^T or dK^T [256, 80]
// Legend, waits
//   as in consumer.cuh
// Masking
//   P and dS of hidden pairs are set to 0 after they were formed.
// Limits
//   fp16, bf16; head_dim and value_dim up to 256. Arithmetic: hopper().

#include <cstdint>

#include "gpu/kernels/bwd_wgmma/wide_group.cuh"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/softcap.cuh"

namespace attest {

/// The keys that each of a lane's two rows sees, relative to the lane's first column of S.
struct BwdSeenKeys {
  int first[2];
  unsigned count[2];
  unsigned hidden;  ///< bit 2 j + e: no row sees the key of the lane's column 8 j + e

  __device__ __forceinline__ bool holds(int h, int j, int e) const {
    return static_cast<unsigned>(8 * j + e - first[h]) < count[h] &&
           (hidden >> (2 * j + e)) % 2 == 0;
  }
};

template <typename Shape>
struct BwdPairGroup : BwdWideGroup<Shape> {
  using Group = BwdWideGroup<Shape>;
  using Group::Bc;
  using Group::Br;
  using Group::lane;
  using Group::p;
  using Group::panels;
  using Group::release;
  using Group::rings;
  using Group::steps;
  using Group::use;
  using Group::works;
  using T = typename Shape::T;
  using PanelOfDq = float[panel_columns / 2];
  typename Group::Result s, dp;
  unsigned weights[Bc / 16][4];  ///< P, times the slope of the softcap
  unsigned hidden = 0;           ///< of the key tile (BwdSeenKeys)
  BwdDqSlot<Shape> slot;

  using Group::Group;

  __device__ __forceinline__ void run() {
    for (;; ++works) {
      rings.full_work(works).wait(bwd_full(works));
      const BwdWork& work = rings.work(works);
      if (work.count == BwdWork::none_left) break;
      find_hidden(work);
      rings.full_k(works).wait(bwd_full<1>(works));
      rings.full_v(0).wait(bwd_full<1>(works));
      add_heads(work);
      release(rings.empty_k(works));
      release(rings.empty_v(0));
      lend_tiles();
      release(rings.empty_work(works));
    }
  }

 private:
  /// The lane's first column of S; the others are one, and multiples of 8, further.
  static __device__ __forceinline__ int column_of() { return 2 * (lane() % 4); }
  /// The lane's first row; the other is 8 further.
  static __device__ __forceinline__ int row_of() { return 16 * Group::warp() + lane() / 4; }

  __device__ __forceinline__ void add_heads(const BwdWork& work) {
    int left = (work.past - work.first) * p.group, tile = work.first;
    if (left == 0) return;
    rings.full_q(steps).wait(bwd_full(steps));
    fence_products();
    issue_pairs(s, rings.q(steps), rings.k(works));
    commit_products();
    wait_for_products<0>();
    hold(s);
#pragma unroll 1
    for (; left > 1; --left) {
      step<true>(work, tile);
      if (++tile == work.past) tile = work.first;
    }
    step<false>(work, tile);
  }
  /// Scores are in s.
  template <bool has_next>
  __device__ __forceinline__ void step(const BwdWork& work, int tile) {
    const int row = tile * Br;
    if (sees_all(work, row)) {
      weigh<false>({});
    } else {
      weigh<true>(seen_keys(work, row));
    }
    release(rings.empty_q(steps));
    rings.full_do(steps).wait(bwd_full<Shape::do_stages>(steps));
    fence_products();
    issue_pairs(dp, rings.d_o(steps), rings.v(0));
    commit_products();
    wait_for_products<0>();
    hold(dp);
    if (sees_all(work, row)) {
      form_ds<false>({});
    } else {
      form_ds<true>(seen_keys(work, row));
    }
    release(rings.empty_do(steps));
    rings.full_ds().wait(bwd_full<1>(use()));
#pragma unroll
    for (int panel = 0; panel < panels; ++panel) {
      PanelOfDq dq;
      fence_products();
      issue_dq(dq, panel);
      commit_products();
      if (has_next && panel == panels - 1) {
        rings.full_q(steps + 1).wait(bwd_full(steps + 1));
        fence_products();
        issue_pairs(s, rings.q(steps + 1), rings.k(works));
        commit_products();
        wait_for_products<1>();
      } else {
        wait_for_products<0>();
      }
      hold(dq);
      if (panel == panels - 1) release(rings.empty_ds());
      store_dq(dq);
    }
    if constexpr (has_next) {
      wait_for_products<0>();
      hold(s);
    }
    ++steps;
  }
  /// Hands both tiles over as they are.
  __device__ __forceinline__ void lend_tiles() const {
    rings.empty_p().wait(bwd_empty<1>(use()));
    release(rings.full_p());
    rings.empty_ds().wait(bwd_empty<1>(use()));
    release(rings.full_ds());
    release(rings.empty_ds());  // this group is no reader
  }

  // Products.
  /// d = rows keys^T, along all columns.
  __device__ __forceinline__ void issue_pairs(typename Group::Result& d, SharedAddress rows,
                                              SharedAddress keys) const {
    const MatrixDescriptor a = k_major_at(rows), b = k_major_at(keys);
    begin_product<T, Major::k, Major::k>(d, a, b);
#pragma unroll
    for (int i = 1; i < Shape::D / 16; ++i) {
      issue_product<T, Major::k, Major::k>(d, a + k_major_step(i, Br), b + k_major_step(i, Bc),
                                           true);
    }
  }
  /// 64 columns of dQ.
  __device__ __forceinline__ void issue_dq(PanelOfDq& dq, int panel) const {
    const MatrixDescriptor a = mn_major_at(rings.ds(), Bc);
    const MatrixDescriptor k = mn_major_at(rings.k(works) + panel * Shape::key_panel_bytes, Bc);
    begin_product<T, Major::mn, Major::mn>(dq, a, k);
#pragma unroll
    for (int i = 1; i < Bc / 16; ++i) {
      issue_product<T, Major::mn, Major::mn>(dq, a + mn_major_step(i), k + mn_major_step(i), true);
    }
  }
  __device__ __forceinline__ void store_dq(const PanelOfDq& dq) {
    constexpr int pieces = Shape::dq_slot_columns / 8;
#pragma unroll
    for (int first = 0; first < panel_columns / 8; first += pieces) {
      rings.empty_dq(slot.number).wait(slot.parity ^ 1U);
      // A thread's numbers are 16 bytes wide pieces 2 KiB apart: no two lanes meet in a bank.
      const SharedAddress out = rings.dq(slot.number) + 16 * Group::thread();
#pragma unroll
      for (int i = 0; i < pieces; ++i) {
        const int at = 4 * (first + i);
        store_16_bytes(out + i * 16 * warpgroup_threads,
                       float4{dq[at], dq[at + 1], dq[at + 2], dq[at + 3]});
      }
      fence_async_shared();
      release(rings.full_dq(slot.number));
      slot.advance();
    }
  }

  // Masks.
  __device__ __forceinline__ void find_hidden(const BwdWork& work) {
    hidden = 0;
    if (p.key_mask == nullptr) return;
    const std::uint8_t* const mask = p.key_mask + std::int64_t{work.request} * p.keys;
#pragma unroll 1
    for (int bit = 0; bit < Bc / 4; ++bit) {
      const int key = work.key + column_of() + bit / 2 * 8 + bit % 2;
      if (key < work.keys && mask[key] == 0) hidden |= 1U << bit;
    }
  }
  __device__ __forceinline__ bool sees_all(const BwdWork& work, int row) const {
    return p.key_mask == nullptr && bwd_sees_all(p, work, work.key, Bc, row);
  }
  __device__ __forceinline__ BwdSeenKeys seen_keys(const BwdWork& work, int row) const {
    BwdSeenKeys keys;
    keys.hidden = hidden;
    const int column = work.key + column_of();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int m = row + row_of() + 8 * h;
      int first = m + work.begin;
      int past = m < work.queries ? min(work.keys, m + work.reach) : first;
      if (p.sums.keys_of_rows != nullptr && m < work.queries) {
        const BwdSeen seen = p.sums.keys_of_rows[std::int64_t{work.request} * p.queries + m];
        first = seen.first;
        past = seen.past;
      }
      keys.first[h] = first - column;
      keys.count[h] = static_cast<unsigned>(max(0, past - first));
    }
    return keys;
  }

  // Weights.
  /// P from S.
  template <bool is_masked>
  __device__ __forceinline__ void weigh(const BwdSeenKeys& keys) {
    const float* const rows = rings.lse(steps) + row_of();
    const float lse2[2] = {rows[0], rows[8]};
    rings.empty_p().wait(bwd_empty<1>(use()));
    const SharedAddress to = Group::row_in(rings.p());
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i) {
      unsigned plain[4];
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        float x[2], sloped[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          x[e] = s[8 * i + 2 * part + e];
          float slope = 1.0F;
          if constexpr (Shape::choice.softcap) {
            x[e] = tanh_of(x[e] * p.per_score);
            slope = fmaf(-x[e], x[e], 1.0F);
          }
          x[e] = HardwareExp2::of(fmaf(x[e], p.c, -lse2[part % 2]));
          if (is_masked && !keys.holds(part % 2, 2 * i + part / 2, e)) x[e] = 0.0F;
          sloped[e] = x[e] * slope;
        }
        plain[part] = packed<T>(x[0], x[1]);
        weights[i][part] = Shape::choice.softcap ? packed<T>(sloped[0], sloped[1]) : plain[part];
      }
      store_transposed(to + i * 16 * panel_row_bytes, plain);
    }
    fence_async_shared();
    release(rings.full_p());
  }
  /// dP becomes dS.
  template <bool is_masked>
  __device__ __forceinline__ void form_ds(const BwdSeenKeys& keys) {
    const float* const rows = rings.delta(steps) + row_of();
    const float delta[2] = {rows[0], rows[8]};
    rings.empty_ds().wait(bwd_empty<1>(use()));
    const SharedAddress to = Group::row_in(rings.ds());
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i) {
      unsigned words[4];
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        T pair[2];
        memcpy(pair, &weights[i][part], sizeof pair);
        float x[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          x[e] = to_float(pair[e]) * (dp[8 * i + 2 * part + e] - delta[part % 2]);
          if (is_masked && !keys.holds(part % 2, 2 * i + part / 2, e)) x[e] = 0.0F;
        }
        words[part] = packed<T>(x[0], x[1]);
      }
      store_transposed(to + i * 16 * panel_row_bytes, words);
    }
    fence_async_shared();
    release(rings.full_ds());
  }
};

}  // namespace attest
