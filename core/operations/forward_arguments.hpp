#pragma once

#include <cstdint>

#include "core/attention/shared_bias.hpp"
#include "core/attention/storage.hpp"
#include "core/operations/forward.hpp"
#include "core/run/arguments.hpp"

namespace attest {

/// Arguments of a launch of an attention kernel, with the tensors by name. Q, K, V and O hold the
/// problem's element type. Where the problem has lengths, the entries of the batch are packed along
/// the sequence: row n of entry b is row query_starts[b] + n (K, V: key_starts[b] + n) of a tensor
/// [1, heads, total, dim], and LSE is [query_heads, total queries]. With a page table K and V are
/// pools [pages, kv_heads, page_size, dim], whose pages are the batch of their strides.
struct ForwardArguments {
  Problem problem;
  Plan plan;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;
  float* lse = nullptr;          ///< [batch, query_heads, query_len], contiguous; null: not given
  void* workspace = nullptr;     ///< workspace_bytes() of memory holding NaN
  unsigned* counters = nullptr;  ///< counter_bytes() of zeros, which a launch leaves at 0
  const std::int32_t* query_starts = nullptr;  ///< [batch + 1], cu_seqlens; null without lengths
  const std::int32_t* key_starts = nullptr;    ///< cu_seqlens of K and V
  /// Lengths of entries [batch], for kernels that take gaps between packed entries, where there are
  /// any (Arguments::entry_gap); otherwise null.
  const std::int32_t *query_lengths = nullptr, *key_lengths = nullptr;
  const std::uint8_t* key_mask =
      nullptr;                     ///< [batch, key_len], 1: not hidden; null without padding
  const float* sinks = nullptr;    ///< [query_heads]; null without sinks
  const float* slopes = nullptr;   ///< [query_heads]; null without slopes
  const float* bias = nullptr;     ///< element (0, 0, 0, 0); null without a bias
  const void* gate = nullptr;      ///< in O's format; null without a gate
  const void* residual = nullptr;  ///< in O's format; null without a residual
  /// [batch]; null without a prefix.
  const std::int32_t* prefix_lengths = nullptr;
  /// [batch, query_len] and [batch, key_len]; null without documents.
  const std::int32_t *query_documents = nullptr, *key_documents = nullptr;
  KeyLists key_lists;    ///< not used without lists
  PageTable page_table;  ///< K and V lie in its pages where its page_size is not 0
  Strides q_strides, k_strides, v_strides, o_strides;
  Strides bias_strides;                    ///< 0 along a dimension that is shared
  Strides gate_strides, residual_strides;  ///< packed as O is

  ForwardArguments() = default;
  /// Names the tensors of `all`. Implicit: a kernel's launch function takes these where
  /// KernelInfo::launch hands over Arguments.
  ForwardArguments(const Arguments& all)
      : problem(all.problem),
        plan(all.plan),
        q(all[forward::q].data),
        k(all[forward::k].data),
        v(all[forward::v].data),
        o(all[forward::o].data),
        lse(static_cast<float*>(all[forward::lse].data)),
        workspace(all.workspace),
        counters(all.counters),
        query_starts(all.query_starts),
        key_starts(all.key_starts),
        query_lengths(all.query_lengths),
        key_lengths(all.key_lengths),
        key_mask(all.key_mask),
        prefix_lengths(all.prefix_lengths),
        query_documents(all.query_documents),
        key_documents(all.key_documents),
        key_lists(all.key_lists),
        page_table(all.page_table),
        q_strides(all[forward::q].strides),
        k_strides(all[forward::k].strides),
        v_strides(all[forward::v].strides),
        o_strides(all[forward::o].strides) {
    // Operations that extend this one have other tensors of these numbers.
    if (problem.sinks == Sinks::given) sinks = static_cast<const float*>(all[forward::sinks].data);
    if (problem.slopes == Slopes::given) {
      slopes = static_cast<const float*>(all[forward::slopes].data);
    }
    if (problem.gate == OutputGate::given) {
      gate = all[forward::gate].data;
      gate_strides = all[forward::gate].strides;
    }
    if (problem.residual == Residual::given) {
      residual = all[forward::residual].data;
      residual_strides = all[forward::residual].strides;
    }
    if (problem.bias == Bias::none) return;
    bias = static_cast<const float*>(all[forward::bias].data);
    bias_strides = all[forward::bias].strides;
    if (entries_share_bias(problem)) bias_strides.batch = 0;
    if (heads_share_bias(problem)) bias_strides.head = 0;
  }
  /// Arguments by number. Implicit, for kernels that launch others.
  operator Arguments() const {
    Arguments all;
    all.problem = problem;
    all.plan = plan;
    all.workspace = workspace;
    all.counters = counters;
    all.query_starts = query_starts;
    all.key_starts = key_starts;
    all.query_lengths = query_lengths;
    all.key_lengths = key_lengths;
    all.key_mask = key_mask;
    all.prefix_lengths = prefix_lengths;
    all.query_documents = query_documents;
    all.key_documents = key_documents;
    all.key_lists = key_lists;
    all.page_table = page_table;
    all[forward::q] = {q, q_strides};
    all[forward::k] = {k, k_strides};
    all[forward::v] = {v, v_strides};
    if (sinks != nullptr) all[forward::sinks] = {sinks, {}};
    if (slopes != nullptr) all[forward::slopes] = {slopes, {}};
    if (bias != nullptr) all[forward::bias] = {bias, bias_strides};
    if (gate != nullptr) all[forward::gate] = {gate, gate_strides};
    if (residual != nullptr) all[forward::residual] = {residual, residual_strides};
    all[forward::o] = {o, o_strides};
    all[forward::lse] = {lse, strides_of(stored_shape(problem, forward::lse, {}), {})};
    return all;
  }
};

/// Strides of Q, K, V and O by name.
struct ForwardLayouts {
  TensorLayout q = {}, k = {}, v = {}, o = {};

  operator Layouts() const {
    Layouts layouts;
    layouts[forward::q] = q;
    layouts[forward::k] = k;
    layouts[forward::v] = v;
    layouts[forward::o] = o;
    return layouts;
  }
};

}  // namespace attest
