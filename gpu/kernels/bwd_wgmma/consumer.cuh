#pragma once

// What a warpgroup that multiplies does: 64 keys of each key tile of its block.
//
// Idea
//   S^T = K Q^T and dP^T = V dO^T have keys as rows. As wgmma leaves them in registers they are,
//   rounded to 16 bits, the left operands of dV += P^T dO and dK += dS^T Q: neither goes through
//   shared memory. dQ = dS K sums over all keys of the tile, so dS does: every group writes its 64
//   keys of it, and group 0 multiplies. The others go on with the next step meanwhile, so that one
//   group multiplies while another weighs.
//
//   group 0                                    the others
//     issue S, issue dP                          issue S(j)
//     P = 2^(c s - LSE2), under dP               wait for dV, dK(j-1): give Q, dO(j-1) back
//     dS = P (dP - delta)                        issue dP, P under it, dS
//     issue dV                                   issue dV
//     dS to shared memory                        dS to shared memory
//     issue dK, wait; give Q, dO back            issue dK: both run under the next step's S
//     wait for the others' dS
//     issue dQ, wait; dQ to shared memory, from where it is added to its sums (loader.cuh)
//
// Resident
//   shared     K [k_stages, Bc, D], V [Bc, D], Q and dO [2, 64, D], LSE2 and delta [2, 64],
//              dS [2, 64, Bc], dQ [64, D] in fp32
//   registers  S, dP [64, 64]; dK, dV [64, D] of the group's keys; P and dS in 16 bits
// Legend
//   Br, Bc query_tile, key_tile; D head_dim rounded up; step: a row tile of one query head; LSE2
//   LSE log2(e), infinite for rows that do not exist or see nothing, so that their P is 0
// Masking
//   Groups but the first skip steps none of whose pairs is seen, and write dS = 0. Only steps that
//   hold a pair that is not seen compare keys with rows; P and dS of hidden pairs are set to 0
//   after they were formed: no score makes 2^(s - LSE2) 0 for every LSE. Which rows see a key
//   follows from its position or, with prefixes and documents, stands in memory (ranges.cuh).
// ALiBi
//   -slope |distance| joins LSE2 before the score does. A sink is in LSE: no step knows of it.
// Waits
//   full, empty  barriers of shared memory (rings.cuh)
//   products     registers of a product are touched after wait_for_products()
// Limits
//   fp16, bf16; head_dim up to 128. Arithmetic: hopper().

#include <cmath>
#include <cstdint>

#include "gpu/kernels/bwd_wgmma/rings.cuh"
#include "gpu/kernels/bwd_wgmma/rows_out.cuh"
#include "gpu/kernels/bwd_wgmma/units.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/softcap.cuh"
#include "gpu/primitives/wgmma_begin.cuh"

namespace attest {

/// The rows that each of a lane's two keys is seen by, relative to the lane's first column of S^T.
struct BwdSeenRows {
  int first[2];
  unsigned count[2];

  __device__ __forceinline__ bool holds(int h, int column) const {
    return static_cast<unsigned>(column - first[h]) < count[h];
  }
};

/// Distances of a lane's two keys from the diagonals of its rows, as ALiBi counts them. Those of 0
/// change no bit.
struct BwdDistances {
  float per_key;  ///< what a key of distance adds to a score in units of log2
  float first;    ///< from the first key to the first row

  __device__ __forceinline__ float added(int h, int column, float shift) const {
    return fmaf(per_key, fabsf(first + static_cast<float>(8 * h - column)), shift);
  }
};

template <typename Shape, bool adds_dq>
struct BwdConsumer : BwdThread {
  using T = typename Shape::T;
  static constexpr int D = Shape::D, Bc = Shape::Bc, Br = Shape::Br;
  static constexpr bool overlap = Shape::choice.overlap && !adds_dq;
  /// P is rounded when S and dP are no longer both needed, not while dP is formed: with three
  /// groups registers are short.
  static constexpr bool packs_late = Shape::groups > 2 && !Shape::choice.softcap;

  const BwdParameters& p;
  const BwdRings<Shape>& rings;
  const int group;
  unsigned works = 0, steps = 0;
  int head = 0;  ///< query head of the step
  float s[Br / 2], dp[Br / 2];
  float dk[D / 2], dv[D / 2];
  unsigned weights[Br / 16][4], ds[Br / 16][4];

  __device__ __forceinline__ BwdConsumer(const BwdParameters& p_, const BwdRings<Shape>& rings_,
                                         int group_)
      : p(p_), rings(rings_), group(group_) {}

  __device__ __forceinline__ void run() {
    for (;; ++works) {
      rings.full_work(works).wait(bwd_full(works));
      const BwdWork& work = rings.work(works);
      if (work.count == BwdWork::none_left) break;
#pragma unroll
      for (float& x : dk) x = 0.0F;
#pragma unroll
      for (float& x : dv) x = 0.0F;
      rings.full_k(works).wait(works / Shape::k_stages % 2);
      rings.full_v(group).wait(works % 2);
      add_heads(work);
      store(work);
      fence_async_shared();  // dK and dV went out through V
      release(rings.empty_v(group));
      release(rings.empty_k(works));
      release(rings.empty_work(works));
    }
  }

 private:
  __device__ __forceinline__ void release(Mbarrier empty) const {
    __syncwarp();
    if (lane() == 0) empty.arrive();
  }
  /// Gives Q and dO of a step back.
  __device__ __forceinline__ void release_rows(unsigned step) const {
    __syncwarp();
    if (lane() == 0) {
      rings.empty_q(step).arrive();
      rings.empty_do(step).arrive();
    }
  }
  /// Row tiles with rows that see some of the group's keys, of which `key` is the first.
  __device__ __forceinline__ BwdRowTiles tiles_of(const BwdWork& work, int key) const {
    const int past_key = key + Shape::group_keys;
    if (p.sums.rows_of_keys == nullptr || key >= work.keys) {
      return bwd_tiles_by_mask(work, key, past_key);
    }
    return {bwd_rows_of_key(p, work, key).first,
            bwd_rows_of_key(p, work, min(past_key, work.keys) - 1).past};
  }
  /// The lane's first key in the tile, of its group's 64; the other is 8 further.
  static __device__ __forceinline__ int key_of() {
    return 16 * warp() + lane() / 4;
  }
  static __device__ __forceinline__ int column_of() {
    return 2 * (lane() % 4);
  }

  __device__ __forceinline__ void add_heads(const BwdWork& work) {
    const int key = work.key + group * Shape::group_keys;
    BwdRowTiles seen = tiles_of(work, key);
    head = work.kv_head * p.group;
    if constexpr (adds_dq && Shape::choice.overlap) {
      add_heads_with_late_dq(work, key);
    } else if constexpr (adds_dq) {
      add_heads_with_dq(work, key);
    } else {
      if (seen.first >= seen.past) seen.first = seen.past = work.past;
      const int first = work.first, past = work.past;
#pragma unroll 1
      for (int h = 0; h < p.group; ++h) {
        skip(seen.first - first);
#pragma unroll 1
        for (int tile = seen.first; tile < seen.past; ++tile) step(work, key, tile, seen);
        if constexpr (overlap) {
          wait_for_products<0>();
          hold(dk);
          hold(dv);
          hold_operands();
          if (seen.first < seen.past) release_rows(steps - 1);
        }
        skip(past - seen.past);
        ++head;
      }
    }
  }
  /// All steps of the key tile. dQ of a step is formed during the next one: its first columns
  /// before dV and dK, its last ones before the next scores; either leaves while what follows it is
  /// formed.
  __device__ __forceinline__ void add_heads_with_late_dq(const BwdWork& work, int key) {
    int left = (work.past - work.first) * p.group, tile = work.first;
    if (left == 0) return;
    rings.full_q(steps).wait(bwd_full(steps));
    fence_products();
    issue_scores(steps);
    commit_products();
    wait_for_products<0>();
    hold(s);
    if (left == 1) {
      step_with_late_dq<false, false>(work, key, tile);
    } else {
      step_with_late_dq<false, true>(work, key, tile);
      const auto next = [&] { go_on(work, tile); };
#pragma unroll 1
      for (; left > 2; --left) {
        next();
        step_with_late_dq<true, true>(work, key, tile);
      }
      next();
      step_with_late_dq<true, false>(work, key, tile);
    }
    rings.full_ds(steps - 1).wait(bwd_full(steps - 1));
#pragma unroll
    for (int panel = 0; panel < Shape::panels; ++panel) {
      float dq[panel_columns / 2];
      fence_products();
      issue_dq(dq, panel, steps - 1);
      commit_products();
      wait_for_products<0>();
      hold(dq);
      if (panel == Shape::panels - 1) release(rings.empty_ds(steps - 1));
      store_dq(dq, panel, steps - 1);
    }
  }
  template <bool has_previous, bool has_next>
  __device__ __forceinline__ void step_with_late_dq(const BwdWork& work, int key, int tile) {
    rings.full_do(steps).wait(bwd_full(steps));
    fence_products();
    issue_products();
    commit_products();
    weigh_to_ds(work, key, tile);
    store_ds();
    if constexpr (has_previous) rings.full_ds(steps - 1).wait(bwd_full(steps - 1));
    hold(dk);
    hold(dv);
    hold_operands();
    float dq[panel_columns / 2];
    constexpr int last = Shape::panels - 1;
    constexpr bool has_first_columns = has_previous && last > 0;
    fence_products();
    if constexpr (has_first_columns) {
      issue_dq(dq, 0, steps - 1);
      commit_products();
    }
    issue_dv();
    issue_dk();
    commit_products();
    if constexpr (has_first_columns) {
      wait_for_products<1>();
      hold(dq);
      store_dq(dq, 0, steps - 1);
    }
    wait_for_products<0>();
    hold(dk);
    hold(dv);
    hold_operands();
    release_rows(steps);
    if constexpr (has_next) rings.full_q(steps + 1).wait(bwd_full(steps + 1));
    fence_products();
    if constexpr (has_previous) {
      issue_dq(dq, last, steps - 1);
      commit_products();
    }
    if constexpr (has_next) {
      issue_scores(steps + 1);
      commit_products();
    }
    if constexpr (has_previous) {
      wait_for_products<has_next ? 1 : 0>();
      hold(dq);
      release(rings.empty_ds(steps - 1));
      store_dq(dq, last, steps - 1);
    }
    if constexpr (has_next) {
      wait_for_products<0>();
      hold(s);
    }
    ++steps;
  }

  /// To the next row tile, of the next head after the last one.
  __device__ __forceinline__ void go_on(const BwdWork& work, int& tile) {
    if (++tile == work.past) {
      tile = work.first;
      ++head;
    }
  }

  /// All steps of the key tile; scores of a step are formed behind dQ of the step before.
  __device__ __forceinline__ void add_heads_with_dq(const BwdWork& work, int key) {
    int left = (work.past - work.first) * p.group, tile = work.first;
    if (left == 0) return;
    rings.full_q(steps).wait(bwd_full(steps));
    fence_products();
    issue_scores(steps);
    commit_products();
    wait_for_products<0>();
    hold(s);
#pragma unroll 1
    for (; left > 1; --left) {
      step_with_dq<true>(work, key, tile);
      go_on(work, tile);
    }
    step_with_dq<false>(work, key, tile);
  }

  /// Gives the next steps back, with dS = 0.
  __device__ __forceinline__ void skip(int count) {
#pragma unroll 1
    for (; count > 0; --count, ++steps) {
      rings.full_q(steps).wait(bwd_full(steps));
      rings.full_do(steps).wait(bwd_full(steps));
      release_rows(steps);
#pragma unroll
      for (int i = 0; i < Br / 16; ++i) {
#pragma unroll
        for (unsigned& x : ds[i]) x = 0;
      }
      store_ds();
    }
  }

  __device__ __forceinline__ void step(const BwdWork& work, int key, int tile,
                                       const BwdRowTiles& seen) {
    rings.full_q(steps).wait(bwd_full(steps));
    fence_products();
    issue_scores(steps);
    commit_products();
    if constexpr (overlap) {
      wait_for_products<1>();
      hold(dk);
      hold(dv);
      hold_operands();
      if (tile > seen.first) release_rows(steps - 1);
    }
    rings.full_do(steps).wait(bwd_full(steps));
    fence_products();
    issue_products();
    commit_products();
    wait_for_products<1>();
    hold(s);
    weigh_and_sum(work, key, tile);
    if constexpr (!overlap) {
      wait_for_products<0>();
      hold(dk);
      hold(dv);
      hold_operands();
      release_rows(steps);
    }
    ++steps;
  }
  /// One row tile of the group that forms dQ; scores are in s.
  template <bool has_next>
  __device__ __forceinline__ void step_with_dq(const BwdWork& work, int key, int tile) {
    float dq[Shape::panels][panel_columns / 2];
    rings.full_do(steps).wait(bwd_full(steps));
    fence_products();
    issue_products();
    commit_products();
    weigh_and_sum(work, key, tile);
    rings.full_ds(steps).wait(bwd_full(steps));
    fence_products();
    issue_dq(dq[0], 0, steps);
    commit_products();
    wait_for_products<1>();
    hold(dk);
    hold(dv);
    hold_operands();
    release_rows(steps);
    if constexpr (Shape::panels > 1) {
      fence_products();
      issue_dq(dq[1], 1, steps);
      commit_products();
      wait_for_products<1>();
      hold(dq[0]);
      store_dq(dq[0], 0, steps);
    }
    if constexpr (has_next) {
      rings.full_q(steps + 1).wait(bwd_full(steps + 1));
      fence_products();
      issue_scores(steps + 1);
      commit_products();
      wait_for_products<1>();
    } else {
      wait_for_products<0>();
    }
    constexpr int last = Shape::panels - 1;
    hold(dq[last]);
    release(rings.empty_ds(steps));
    store_dq(dq[last], last, steps);
    if constexpr (has_next) {
      wait_for_products<0>();
      hold(s);
    }
    ++steps;
  }
  /// Scores become weights while dP is formed; then dS.
  __device__ __forceinline__ void weigh_to_ds(const BwdWork& work, int key, int tile) {
    const int row = tile * Br;
    const bool is_masked =
        p.key_mask != nullptr || !bwd_sees_all(p, work, key, Shape::group_keys, row);
    BwdSeenRows rows{};
    if (is_masked) rows = seen_rows(work, key, row);
    if (p.slopes != nullptr) {
      const BwdDistances distances = distances_of(work, key, row);
      if (is_masked) {
        weigh<true, true>(rows, distances);
      } else {
        weigh<false, true>(rows, distances);
      }
    } else if (is_masked) {
      weigh<true, false>(rows, {});
    } else {
      weigh<false, false>(rows, {});
    }
    hold(s);
    wait_for_products<0>();
    hold(dp);
    if (is_masked) {
      form_ds<true>(rows);
    } else {
      form_ds<false>(rows);
    }
  }
  /// Does what weigh_to_ds() does, and issues dV and dK.
  __device__ __forceinline__ void weigh_and_sum(const BwdWork& work, int key, int tile) {
    weigh_to_ds(work, key, tile);
    hold(dv);
    hold_operands();
    fence_products();
    issue_dv();
    commit_products();
    store_ds();
    fence_products();
    issue_dk();
    commit_products();
  }

  // Products.
  __device__ __forceinline__ void hold_operands() {
#pragma unroll
    for (int i = 0; i < Br / 16; ++i) {
      hold(weights[i]);
      hold(ds[i]);
    }
  }
  /// Step i of a product from shared memory; the first one forgets what d held.
  template <Major b_major>
  static __device__ __forceinline__ void issue_step(float (&d)[32], const MatrixDescriptor& a,
                                                    const MatrixDescriptor& b, int i) {
    if (i == 0) {
      begin_product<T, Major::k, b_major>(d, a, b);
    } else {
      issue_product<T, Major::k, b_major>(d, a, b, true);
    }
  }
  __device__ __forceinline__ void issue_scores(unsigned step) {
    const MatrixDescriptor k = k_major_at(rings.k(works) + group * Shape::row_panel_bytes);
    const MatrixDescriptor q = k_major_at(rings.q(step));
#pragma unroll
    for (int i = 0; i < D / 16; ++i) {
      issue_step<Major::k>(s, k + k_major_step(i, Bc), q + k_major_step(i, Br), i);
    }
  }
  __device__ __forceinline__ void issue_products() {
    // The same in every step. In units the 16 registers are not there that would keep what follows.
    const int nothing = Shape::choice.in_units && Shape::groups == 2 ? unknown_zero() : 0;
    const MatrixDescriptor v = k_major_at(rings.v(group) + nothing);
    const MatrixDescriptor d_o = k_major_at(rings.d_o(steps));
#pragma unroll
    for (int i = 0; i < D / 16; ++i) {
      issue_step<Major::k>(dp, v + k_major_step(i, Shape::group_keys), d_o + k_major_step(i, Br),
                           i);
    }
  }
  __device__ __forceinline__ void issue_dv() {
    const MatrixDescriptor d_o = mn_major_at(rings.d_o(steps), Br);
#pragma unroll
    for (int i = 0; i < Br / 16; ++i) {
      issue_product<T, Major::mn>(dv, weights[i], d_o + mn_major_step(i), true);
    }
  }
  __device__ __forceinline__ void issue_dk() {
    const MatrixDescriptor q = mn_major_at(rings.q(steps), Br);
#pragma unroll
    for (int i = 0; i < Br / 16; ++i) {
      issue_product<T, Major::mn>(dk, ds[i], q + mn_major_step(i), true);
    }
  }

  // Weights.
  __device__ __forceinline__ bool is_hidden(const BwdWork& work, int key) const {
    return p.key_mask != nullptr && p.key_mask[std::int64_t{work.request} * p.keys + key] == 0;
  }
  __device__ __forceinline__ BwdSeenRows seen_rows(const BwdWork& work, int key, int row) const {
    BwdSeenRows rows;
    const int column = row + column_of();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int n = key + key_of() + 8 * h;
      const bool is_seen = n < work.keys && !is_hidden(work, n);
      BwdSeen seen{0, 0};
      if (p.sums.rows_of_keys == nullptr) {
        seen.first = n - work.reach + 1;
        seen.past = is_seen ? min(work.queries, n - work.begin + 1) : seen.first;
      } else if (is_seen) {
        seen = bwd_rows_of_key(p, work, n);
      }
      rows.first[h] = seen.first - column;
      rows.count[h] = static_cast<unsigned>(max(0, seen.past - seen.first));
    }
    return rows;
  }
  __device__ __forceinline__ BwdDistances distances_of(const BwdWork& work, int key,
                                                       int row) const {
    return {p.slopes[head] * -bwd_log2_e,
            static_cast<float>(key + key_of() - work.diagonal - row - column_of())};
  }
  /// Values of a vector by row for two neighbouring columns.
  static __device__ __forceinline__ float2 pair_of(const float* vector, int j) {
    return *reinterpret_cast<const float2*>(vector + 8 * j + column_of());
  }

  static __device__ __forceinline__ void pack(unsigned (&to)[4], const float (&from)[Br / 2],
                                              int i) {
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      to[part] = packed<T>(from[8 * i + 2 * part], from[8 * i + 2 * part + 1]);
    }
  }
  /// S becomes P, times the slope of the softcap; P is rounded as well.
  template <bool is_masked, bool has_slopes>
  __device__ __forceinline__ void weigh(const BwdSeenRows& rows, const BwdDistances& distances) {
    const float* const lse = rings.lse(steps);
#pragma unroll
    for (int i = 0; i < Br / 16; ++i) {
      float slope[8];
#pragma unroll
      for (int j = 2 * i; j < 2 * i + 2; ++j) {
        const float2 lse2 = pair_of(lse, j);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          float& x = s[4 * j + e];
          if constexpr (Shape::choice.softcap) {
            x = tanh_of(x * p.per_score);
            slope[4 * (j % 2) + e] = fmaf(-x, x, 1.0F);
          }
          float shift = e % 2 == 0 ? -lse2.x : -lse2.y;
          if constexpr (has_slopes) shift = distances.added(e / 2, 8 * j + e % 2, shift);
          x = HardwareExp2::of(fmaf(x, p.c, shift));
          if (is_masked && !rows.holds(e / 2, 8 * j + e % 2)) x = 0.0F;
        }
      }
      if constexpr (!packs_late) pack(weights[i], s, i);
      if constexpr (Shape::choice.softcap) {
#pragma unroll
        for (int e = 0; e < 8; ++e) s[8 * i + e] *= slope[e];
      }
    }
  }
  template <bool is_masked>
  __device__ __forceinline__ void form_ds(const BwdSeenRows& rows) {
    const float* const delta = rings.delta(steps);
#pragma unroll
    for (int i = 0; i < Br / 16; ++i) {
#pragma unroll
      for (int j = 2 * i; j < 2 * i + 2; ++j) {
        const float2 d = pair_of(delta, j);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          float& x = dp[4 * j + e];
          x = s[4 * j + e] * (x - (e % 2 == 0 ? d.x : d.y));
          if (is_masked && !rows.holds(e / 2, 8 * j + e % 2)) x = 0.0F;
        }
      }
      if constexpr (packs_late) pack(weights[i], s, i);
      pack(ds[i], dp, i);
    }
  }

  /// dS of the group's keys to shared memory, [row][key].
  __device__ __forceinline__ void store_ds() {
    rings.empty_ds(steps).wait(bwd_empty(steps));
    const SharedAddress panel = rings.ds(steps) + group * Shape::row_panel_bytes;
    // Matrix m of a lane group: keys 8 (m % 2) on of the warp's 16, rows 8 (m / 2) on of 16.
    const int matrix = lane() / 8, chunk = 2 * warp() + matrix % 2;
    const int row = 8 * (matrix / 2) + lane() % 8;
#pragma unroll
    for (int i = 0; i < Br / 16; ++i) {
      store_transposed(panel + swizzled_chunk(16 * i + row, chunk), ds[i]);
    }
    fence_async_shared();
    release(rings.full_ds(steps));
  }

  /// 64 columns of the step's dQ, from all groups' dS.
  __device__ __forceinline__ void issue_dq(float (&dq)[panel_columns / 2], int panel,
                                           unsigned step) {
    const MatrixDescriptor a = k_major_at(rings.ds(step));
    const MatrixDescriptor k = mn_major_at(rings.k(works) + panel * Shape::key_panel_bytes, Bc);
#pragma unroll
    for (int i = 0; i < Bc / 16; ++i) {
      issue_step<Major::mn>(dq, a + k_major_step(i, Br), k + mn_major_step(i), i);
    }
  }
  /// A panel of dQ to shared memory. In units dQ is scaled to them.
  __device__ __forceinline__ void store_dq(float (&dq)[panel_columns / 2], int panel,
                                           unsigned step) {
    rings.empty_dq(panel).wait(step % 2 ^ 1U);
    if constexpr (Shape::choice.in_units) {
      const int row = 16 * warp() + lane() / 4;
      const float* const units = rings.units_in_one(step) + row;
      float2 most = scale_to_units(dq, {units[0], units[8]});
      const bool is_small = most.x < small_integers && most.y < small_integers;
      if (!__any_sync(0xffffffffU, !is_small)) {
        store_panel(dq, panel, [](float x) { return as_integer<true>(x); });
      } else {
        store_panel(dq, panel, [](float x) { return as_integer<false>(x); });
      }
      most = largest_of_lanes<4>(most);
      if (lane() % 4 == 0) {
        rings.used(panel)[row] = used_of_range(most.x);
        rings.used(panel)[row + 8] = used_of_range(most.y);
      }
    } else {
      store_panel(dq, panel, [](float x) { return x; });
    }
    fence_async_shared();
    release(rings.full_dq(panel));
  }
  template <typename Convert>
  __device__ __forceinline__ void store_panel(const float (&dq)[panel_columns / 2], int panel,
                                              Convert convert) {
    // A thread's numbers are 16 bytes wide pieces 2 KiB apart: no two lanes meet in a bank.
    const SharedAddress out = rings.dq(panel) + 16 * thread();
#pragma unroll
    for (int i = 0; i < panel_columns / 8; ++i) {
      store_16_bytes(out + i * 16 * warpgroup_threads,
                     float4{convert(dq[4 * i]), convert(dq[4 * i + 1]), convert(dq[4 * i + 2]),
                            convert(dq[4 * i + 3])});
    }
  }

  template <typename Tensor>
  __device__ __forceinline__ RowsOut<T> rows_of(Tensor* tensor, const Strides& strides,
                                                const BwdWork& work, int columns) const {
    const int key = work.key + group * Shape::group_keys + 16 * warp();
    return {static_cast<T*>(tensor) +
                strides.offset(work.entry, work.kv_head, work.first_key_row + key),
            strides.row, work.keys - key, columns};
  }
  /// Writes dK and dV of the group's keys, by way of its own rows of V, which it has read.
  __device__ __forceinline__ void store(const BwdWork& work) const {
    const SharedAddress ordered = rings.v(group) + 16 * warp() * panel_row_bytes;
    store_rows(dv, 1.0F, ordered, Shape::row_panel_bytes,
               rows_of(p.dv, p.dv_strides, work, p.value_columns));
    store_rows(dk, p.scale, ordered, Shape::row_panel_bytes,
               rows_of(p.dk, p.dk_strides, work, p.columns));
  }
};

}  // namespace attest
