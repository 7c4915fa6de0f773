#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/attention/tensor_list.hpp"
#include "core/run/arguments.hpp"
#include "core/run/kernel.hpp"
#include "cpu_reference/forward/online_softmax.hpp"

namespace attest {

/// One query row and the keys it sees, decoded to fp32. Later keys exist in memory but must not be
/// touched. Where a window, padding or the entry's length hides others than the last, the keys that
/// the row sees are all there are.
struct AttentionRow {
  std::span<const float> query;  ///< [head_dim]
  const float* keys_transposed =
      nullptr;                    ///< [head_dim, key_len]: a dot product runs down a column
  const float* values = nullptr;  ///< [key_len, head_dim]
  std::int64_t key_len = 0;
  std::int64_t visible = 0;  ///< this row sees keys [0, visible)
  float scale = 1;

  /// fl(factor * q.k_j) of the visible keys: an fma chain of head_dim from 0, then one product.
  [[nodiscard]] std::vector<float> scores(float factor) const;
  [[nodiscard]] std::vector<float> scores() const { return scores(scale); }

  /// Value row of key j.
  [[nodiscard]] const float* value(std::int64_t key) const {
    return values + key * static_cast<std::int64_t>(query.size());
  }
  /// acc += weight * v_key, one fma an element.
  void add_value(float weight, std::int64_t key, std::span<float> acc) const;
};

/// Scores of a block of keys; scores[i] belongs to key first + i.
struct ScoreTile {
  std::int64_t first = 0;
  std::span<const float> scores;
};

/// The scores of keys [range.begin, range.end) that `scores` still covers, in tiles of `tile` >= 1
/// keys.
[[nodiscard]] std::vector<ScoreTile> tiles_of(std::span<const float> scores, KeyRange range,
                                              std::int64_t tile);
/// All scores, in tiles of `tile` >= 1 keys.
[[nodiscard]] std::vector<ScoreTile> tiles_of(std::span<const float> scores, std::int64_t tile);

/// Fills o [head_dim] (in fp32, before the one rounding to the element type) and returns the LSE.
using RowAttention =
    std::function<float(const AttentionRow& row, const Plan& plan, std::span<float> o)>;

/// The answer for whole tensors.
using TensorAttention = std::function<Outputs(const Problem&, const Plan&, const Inputs&)>;

/// A launch that decodes the inputs through their strides, calls `attend`, and rounds each output
/// once to its format.
[[nodiscard]] std::function<void(const Arguments&, Device&)> cpu_launch(TensorAttention attend);

/// Completes `kernel` (name, summary, source, precision, plans, role are the caller's): runs on the
/// CPU, all element types, all masks, lengths, padding, rows one by one.
[[nodiscard]] KernelInfo row_kernel(KernelInfo kernel, RowAttention attend);

/// Roundings common to the row kernels: fp32 fma chains, s = fl(scale * dot), library expf, fp32
/// weights, l summed key by key, one division (u) at the end, log within 1 ulp (2 u), one block, so
/// that nothing is rescaled. Kernels change what differs.
[[nodiscard]] PrecisionPlan row_precision(const Problem& problem);

/// exp2_folded for kernels that rescale by 2^fl(fl(m - m') c): the product there is rounded as well
/// as the difference, one u more than in the weights.
[[nodiscard]] ExpMethod exp2_of_scaled_difference();

/// Blocks that key_len keys make, at least 1.
[[nodiscard]] std::int64_t tile_count(std::int64_t key_len, std::int64_t tile);

/// The single Plan of kernels that have nothing to choose.
[[nodiscard]] std::vector<Plan> no_plan_choice(const Problem& problem);
/// One Plan for each key tile that straddles usual lengths: 1, 3, 16, 64.
[[nodiscard]] std::vector<Plan> key_tile_plans(const Problem& problem);

inline constexpr double fp32_roundoff = 0x1p-24;

}  // namespace attest
