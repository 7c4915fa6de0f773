// The inner loop of attention without its loads: S = Q K^T, softmax, O += P V on tiles that stay in
// shared memory, in the orders that kernels use. What it reaches bounds what a kernel with that
// order and tile can reach.
#include <numbers>

#include "gpu/microbench/fill_shared.cuh"
#include "gpu/microbench/kernels.hpp"
#include "gpu/microbench/sm_span.cuh"
#include "gpu/microbench/softmax_tile.cuh"
#include "gpu/primitives/shared_address.cuh"
#include "gpu/primitives/wgmma.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest::microbench {
namespace {

// A warpgroup has 64 rows; head dim d, key tiles of bn.
template <int d, int bn, int groups, Order order, int emulated, Maximum maximum>
__global__ void __launch_bounds__(groups * 128, 1)
    mainloop(int tiles, float c, const std::uint16_t* values, float* sink, SmSpan* spans) {
  extern __shared__ __align__(1024) unsigned char shared[];
  constexpr int q_bytes = 64 * d * 2, kv_bytes = bn * d * 2;
  constexpr bool takes_turns = order == Order::turns || order == Order::turns_and_overlap;
  fill_shared(shared, values, groups * q_bytes + 4 * kv_bytes);
  const int group = warpgroup_of_thread();
  const std::uint64_t q = k_major_descriptor((SharedAddress(shared) + group * q_bytes).value());
  const std::uint64_t k = k_major_descriptor((SharedAddress(shared) + groups * q_bytes).value());
  const std::uint64_t v =
      mn_major_descriptor((SharedAddress(shared) + (groups * q_bytes + 2 * kv_bytes)).value(), bn);
  float s[bn / 2], o[d / 2], scale[2] = {1, 1};
  std::uint32_t p[bn / 16][4];
  TwoRows rows;
  for (float& x : o) x = 0;

  const auto issue_scores = [&](int tile) {
    const std::uint64_t now = k + static_cast<unsigned>(tile % 2) * (kv_bytes / 16U);
    fence_products();
#pragma unroll
    for (int i = 0; i < d / 16; ++i) {
      issue_product<__nv_bfloat16, Major::k, Major::k>(s, q + k_major_step(i, 64),
                                                       now + k_major_step(i, bn), i > 0);
    }
    commit_products();
  };
  const auto issue_output = [&](int tile) {
    const std::uint64_t now = v + static_cast<unsigned>(tile % 2) * (kv_bytes / 16U);
    fence_products();
#pragma unroll
    for (int i = 0; i < bn / 16; ++i)
      issue_product<__nv_bfloat16, Major::mn>(o, p[i], now + mn_major_step(i), true);
    commit_products();
  };
  const auto hold_p = [&] {
#pragma unroll
    for (auto& a : p) hold(a);
  };
  const auto rescale = [&](bool moved) {
    if (maximum == Maximum::every_tile || (maximum == Maximum::lazy && moved)) {
#pragma unroll
      for (int i = 0; i < d / 2; ++i) o[i] *= scale[i / 2 % 2];
    }
  };
  // Each warpgroup waits for its turn at the tensor cores and then lets the next one in.
  const auto take_turn = [&] {
    if (takes_turns) sync_named(1 + group, 256);
  };
  const auto pass_turn = [&] {
    if (takes_turns) arrive_named(1 + (group + 1) % groups, 256);
  };

  begin_span(spans[blockIdx.x]);
  if (takes_turns && group == groups - 1) arrive_named(1, 256);
  constexpr float slack = maximum == Maximum::lazy ? 8 : -1;
  issue_scores(0);
  wait_for_products<0>();
  hold(s);
  softmax<emulated>(s, rows, scale, c, slack);
  pack(s, p);
  hold(o);
  hold_p();
#pragma unroll 1
  for (int tile = 1; tile < tiles; ++tile) {
    if constexpr (order == Order::serial) {
      issue_output(tile - 1);
      wait_for_products<0>();
      hold(o);
      hold_p();
      issue_scores(tile);
      wait_for_products<0>();
      hold(s);
      const bool moved = softmax<emulated>(s, rows, scale, c, slack);
      pack(s, p);
      rescale(moved);
    } else if constexpr (order == Order::turns) {
      take_turn();
      issue_output(tile - 1);
      issue_scores(tile);
      pass_turn();
      wait_for_products<0>();
      hold(s);
      hold(o);
      hold_p();
      if constexpr (maximum == Maximum::unchecked) {
        float tile_sum[2];
        if (softmax_unchecked<emulated>(s, rows, tile_sum, c)) mend(s, o, rows, tile_sum, c);
        rows.sum[0] += tile_sum[0];
        rows.sum[1] += tile_sum[1];
        pack(s, p);
      } else {
        const bool moved = softmax<emulated>(s, rows, scale, c, slack);
        pack(s, p);
        rescale(moved);
      }
    } else {
      take_turn();
      issue_scores(tile);
      issue_output(tile - 1);
      pass_turn();
      wait_for_products<1>();
      hold(s);
      if constexpr (maximum == Maximum::unchecked) {
        float tile_sum[2];
        const bool grew = softmax_unchecked<emulated>(s, rows, tile_sum, c);
        wait_for_products<0>();
        hold(o);
        hold_p();
        if (grew) mend(s, o, rows, tile_sum, c);
        rows.sum[0] += tile_sum[0];
        rows.sum[1] += tile_sum[1];
        pack(s, p);
      } else {
        const bool moved = softmax<emulated>(s, rows, scale, c, slack);
        wait_for_products<0>();
        hold(o);
        hold_p();
        pack(s, p);
        rescale(moved);
      }
    }
    hold(o);
    hold_p();
  }
  issue_output(tiles - 1);
  wait_for_products<0>();
  hold(o);
  if (takes_turns && group == 0) sync_named(1, 256);
  end_span(spans[blockIdx.x]);
  float all = 0;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float l = rows.sum[r];
    l += __shfl_xor_sync(~0U, l, 1);
    l += __shfl_xor_sync(~0U, l, 2);
#pragma unroll
    for (int i = 0; i < d / 2; ++i) {
      if (i / 2 % 2 == r) all += o[i] / l;
    }
  }
  sink[blockIdx.x * blockDim.x + threadIdx.x] = all;
}

template <int d, int bn, int groups, Order order, int emulated, Maximum maximum>
Mainloop form() {
  return {d,
          bn,
          groups,
          order,
          emulated,
          maximum,
          [](int blocks, int tiles, const std::uint16_t* values, float* sink, SmSpan* spans) {
            const auto kernel = mainloop<d, bn, groups, order, emulated, maximum>;
            constexpr int bytes = (groups * 64 + 4 * bn) * d * 2;
            static_assert(bytes <= 232448);
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
            const float c = std::numbers::log2e_v<float> / __builtin_sqrtf(static_cast<float>(d));
            kernel<<<static_cast<unsigned>(blocks), groups * 128, bytes>>>(tiles, c, values, sink,
                                                                           spans);
          }};
}

template <int d, int bn, int groups>
void orders(std::vector<Mainloop>& forms) {
  forms.push_back(form<d, bn, groups, Order::turns, 0, Maximum::lazy>());
  forms.push_back(form<d, bn, groups, Order::overlap, 0, Maximum::every_tile>());
  forms.push_back(form<d, bn, groups, Order::overlap, 0, Maximum::lazy>());
  forms.push_back(form<d, bn, groups, Order::turns, 0, Maximum::unchecked>());
  forms.push_back(form<d, bn, groups, Order::overlap, 0, Maximum::unchecked>());
  forms.push_back(form<d, bn, groups, Order::turns_and_overlap, 0, Maximum::unchecked>());
}

}  // namespace

std::vector<Mainloop> mainloops() {
  std::vector<Mainloop> forms;
  orders<64, 128, 2>(forms);
  orders<64, 128, 3>(forms);
  forms.push_back(form<64, 128, 3, Order::turns, 1, Maximum::lazy>());
  forms.push_back(form<64, 128, 3, Order::overlap, 1, Maximum::lazy>());
  forms.push_back(form<64, 128, 3, Order::turns, 1, Maximum::unchecked>());
  orders<64, 112, 3>(forms);
  orders<64, 64, 4>(forms);
  orders<64, 80, 4>(forms);
  orders<128, 128, 2>(forms);
  orders<128, 176, 2>(forms);
  orders<128, 80, 3>(forms);
  orders<128, 96, 3>(forms);
  orders<256, 80, 2>(forms);
  orders<256, 64, 2>(forms);
  return forms;
}

}  // namespace attest::microbench
