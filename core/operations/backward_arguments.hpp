#pragma once

#include <cstdint>

#include "core/attention/shared_bias.hpp"
#include "core/operations/backward.hpp"
#include "core/run/arguments.hpp"

namespace attest {

/// Arguments of a launch of a backward kernel, with the tensors by name. LSE is [batch,
/// query_heads, query_len], contiguous; with lengths, packed as ForwardArguments says,
/// [query_heads, total queries].
struct BackwardArguments {
  Problem problem;
  Plan plan;
  const void *q = nullptr, *k = nullptr, *v = nullptr, *o = nullptr;
  const float* lse = nullptr;
  const void* d_o = nullptr;
  const float* d_lse = nullptr;   ///< as LSE; null: dLSE is 0
  const float* sinks = nullptr;   ///< [query_heads]; null without sinks
  const float* slopes = nullptr;  ///< [query_heads]; null without slopes
  const float* bias = nullptr;    ///< element (0, 0, 0, 0); null without a bias
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
  float* d_sinks = nullptr;      ///< [query_heads]; null without sinks
  float* d_bias = nullptr;       ///< as the bias; null without one
  void* workspace = nullptr;     ///< workspace_bytes() of memory holding NaN
  unsigned* counters = nullptr;  ///< counter_bytes() of zeros, which a launch leaves at 0
  const std::int32_t* query_starts = nullptr;  ///< [batch + 1], cu_seqlens; null without lengths
  const std::int32_t* key_starts = nullptr;    ///< cu_seqlens of K, V and their gradients
  const std::uint8_t* key_mask =
      nullptr;  ///< [batch, key_len], 1: not hidden; null without padding
  const std::int32_t* prefix_lengths = nullptr;  ///< [batch]; null without a prefix
  /// [batch, query_len] and [batch, key_len]; null without documents.
  const std::int32_t *query_documents = nullptr, *key_documents = nullptr;
  KeyLists key_lists;  ///< not used without lists
  Strides q_strides, k_strides, v_strides, o_strides, do_strides, dq_strides, dk_strides,
      dv_strides;
  Strides bias_strides;  ///< of its gradient, too; 0 along a dimension that is shared

  /// Names the tensors of `all`. Implicit: a kernel's launch function takes these where
  /// KernelInfo::launch hands over Arguments.
  BackwardArguments(const Arguments& all)
      : problem(all.problem),
        plan(all.plan),
        q(all[backward::q].data),
        k(all[backward::k].data),
        v(all[backward::v].data),
        o(all[backward::o].data),
        lse(static_cast<const float*>(all[backward::lse].data)),
        d_o(all[backward::d_o].data),
        d_lse(static_cast<const float*>(all[backward::d_lse].data)),
        sinks(static_cast<const float*>(all[backward::sinks].data)),
        slopes(static_cast<const float*>(all[backward::slopes].data)),
        dq(all[backward::dq].data),
        dk(all[backward::dk].data),
        dv(all[backward::dv].data),
        d_sinks(static_cast<float*>(all[backward::d_sinks].data)),
        workspace(all.workspace),
        counters(all.counters),
        query_starts(all.query_starts),
        key_starts(all.key_starts),
        key_mask(all.key_mask),
        prefix_lengths(all.prefix_lengths),
        query_documents(all.query_documents),
        key_documents(all.key_documents),
        key_lists(all.key_lists),
        q_strides(all[backward::q].strides),
        k_strides(all[backward::k].strides),
        v_strides(all[backward::v].strides),
        o_strides(all[backward::o].strides),
        do_strides(all[backward::d_o].strides),
        dq_strides(all[backward::dq].strides),
        dk_strides(all[backward::dk].strides),
        dv_strides(all[backward::dv].strides) {
    if (problem.bias == Bias::none) return;
    bias = static_cast<const float*>(all[backward::bias].data);
    d_bias = static_cast<float*>(all[backward::d_bias].data);
    bias_strides = all[backward::bias].strides;
    if (entries_share_bias(problem)) bias_strides.batch = 0;
    if (heads_share_bias(problem)) bias_strides.head = 0;
  }
};

}  // namespace attest
