#include "cpu_reference/forward/emulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/base/error.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/online_softmax.hpp"
#include "cpu_reference/forward/score_rule.hpp"
#include "cpu_reference/rounding/split_product.hpp"

namespace attest {
namespace {

float rounded_to(ElementType type, float value) {
  if (type == ElementType::fp32) return value;
  return static_cast<float>(round_to(type, static_cast<double>(value)));
}

struct Partial {
  float m = minus_infinity;
  float l = 0;
  std::vector<float> acc;   ///< normalised by l under Rescale::normalised_steps
  bool is_natural = false;  ///< m is a natural logarithm already
};

void multiply(std::span<float> values, float factor) {
  for (float& value : values) value *= factor;
}

/// One query row against one head of K and V.
class RowReplay {
 public:
  RowReplay(const PrecisionPlan& precision, const ScoreRule& rule, ElementType input_type,
            int query_exponent, const SplitOperand& keys_transposed, const SplitOperand& values)
      : precision_(precision),
        rule_(rule),
        input_type_(input_type),
        query_exponent_(query_exponent),
        keys_transposed_(keys_transposed),
        values_(values) {}

  /// Scores of keys [0, visible).
  [[nodiscard]] std::vector<float> scores(std::span<const float> query,
                                          std::int64_t visible) const {
    // A query multiplied by the scale in fp32 no longer has the input's exponent range.
    const ElementType type = precision_.scale_folded_into_q ? ElementType::fp32 : input_type_;
    std::vector<float> result(static_cast<std::size_t>(visible), 0.0F);
    accumulate_split_product(precision_.score, rule_.query(query), type, query_exponent_,
                             keys_transposed_, 0, result);
    rule_.finish_scores(result);
    return result;
  }

  /// Keys of `range` that are visible, tile by tile.
  [[nodiscard]] Partial part(std::span<const float> scores, KeyRange range,
                             std::int64_t tile) const {
    Partial partial;
    partial.acc.assign(static_cast<std::size_t>(values_.lanes()), 0.0F);
    const std::int64_t end = std::min(range.end, static_cast<std::int64_t>(scores.size()));
    const auto slice = [&](std::int64_t from, std::int64_t to) {
      return scores.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from));
    };
    if (precision_.rescale == Rescale::none && range.begin < end) {
      partial.m = maximum(slice(range.begin, end));
    }
    for (std::int64_t first = range.begin; first < end; first += tile) {
      add_block(partial, slice(first, std::min(first + tile, end)), first);
    }
    return partial;
  }

  [[nodiscard]] Partial merged(std::vector<Partial> parts) const {
    if (parts.size() == 1) return parts.front();
    const bool merges_lse = precision_.merge == Merge::lse_pairs;
    const bool is_finished = is_normalised() || precision_.merge != Merge::sums;
    Partial sum;
    sum.acc.assign(static_cast<std::size_t>(values_.lanes()), 0.0F);
    for (Partial& part : parts) {
      if (is_finished) finish_part(part);
      if (merges_lse && part.l != 0.0F) part.m = rule_.natural(part.m) + std::log(part.l);
      sum.m = maximum(sum.m, part.m);
    }
    for (const Partial& part : parts) {
      if (merges_lse && part.l == 0.0F) continue;  // where no part saw a key: -inf - -inf
      const float factor =
          merges_lse ? rule_.natural_exponential(part.m - sum.m) : rule_.rescale(part.m, sum.m);
      const float share = merges_lse ? factor : factor * part.l;
      const float weight = is_finished ? share : factor;
      for (std::size_t c = 0; c < sum.acc.size(); ++c) {
        sum.acc[c] = std::fma(weight, part.acc[c], sum.acc[c]);
      }
      sum.l += share;
    }
    sum.is_natural = merges_lse;
    if (is_normalised() && sum.l != 0.0F) {
      for (float& element : sum.acc) element /= sum.l;
    }
    return sum;
  }

  /// Writes O rounded to the input's type; returns the LSE.
  [[nodiscard]] float finish(const Partial& total, std::span<float> o) const {
    const float lse =
        finish_row(total.is_natural ? total.m : rule_.natural(total.m), total.l, total.acc, o);
    if (is_normalised()) std::copy(total.acc.begin(), total.acc.end(), o.begin());
    for (float& element : o) element = rounded_to(input_type_, element);
    return lse;
  }

 private:
  [[nodiscard]] bool is_normalised() const {
    return precision_.rescale == Rescale::normalised_steps;
  }

  /// O of a part, as it is stored between the split and the merge.
  void finish_part(Partial& part) const {
    for (float& element : part.acc) {
      if (!is_normalised() && part.l != 0.0F) element /= part.l;
      element = rounded_to(precision_.partial_format, element);
    }
  }

  void add_block(Partial& partial, std::span<const float> scores, std::int64_t first) const {
    const float raised = maximum(partial.m, maximum(scores));
    if (raised == minus_infinity) return;  // overflowed scores only: no key counts yet
    float factor = 1;
    if (precision_.rescale != Rescale::none) {
      factor = rule_.rescale(partial.m, raised);
      partial.m = raised;
      partial.l *= factor;
      if (is_normalised()) factor = partial.l;
    }
    std::vector<float> weights;
    for (const float score : scores) {
      const float weight = rule_.weight(score, partial.m);
      const float rounded = rounded_to(precision_.weight_format, weight);
      partial.l += precision_.sums_rounded_weights ? rounded : weight;
      weights.push_back(rounded);
    }
    add_product(partial.acc, factor, weights, first);
    if (is_normalised()) {
      for (float& element : partial.acc) element /= partial.l;
    }
  }

  /// acc times factor, plus P V of a block.
  void add_product(std::span<float> acc, float factor, std::span<const float> weights,
                   std::int64_t first) const {
    const int exponent = std::ilogb(precision_.weight_scale);
    if (precision_.promoted_keys == 0) {
      multiply(acc, factor);
      accumulate_split_product(precision_.value, weights, precision_.weight_format, exponent,
                               values_, first, acc);
      return;
    }
    std::vector<float> of_block(acc.size(), 0.0F);
    accumulate_split_product(precision_.value, weights, precision_.weight_format, exponent, values_,
                             first, of_block);
    for (std::size_t c = 0; c < acc.size(); ++c) acc[c] = std::fma(acc[c], factor, of_block[c]);
  }

  const PrecisionPlan& precision_;
  const ScoreRule& rule_;
  ElementType input_type_;
  int query_exponent_;
  const SplitOperand& keys_transposed_;
  const SplitOperand& values_;
};

/// [rows, columns] to [columns, rows].
std::vector<float> transposed(std::span<const float> matrix, std::int64_t columns) {
  const auto width = static_cast<std::size_t>(columns);
  const std::size_t rows = matrix.size() / width;
  std::vector<float> result(matrix.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < width; ++c) result[c * rows + r] = matrix[r * width + c];
  }
  return result;
}

void check_plan(const Plan& plan) {
  for (const PlanField& field : plan_fields()) {
    if (plan.*field.member < 0) {
      throw InvalidInput(fmt::format("{} is {}; allowed: 0 (whole range) or more (emulated plan)",
                                     field.name, plan.*field.member));
    }
  }
}

}  // namespace

Outputs emulate(const Problem& problem, const Plan& plan, const PrecisionPlan& precision,
                const Inputs& inputs) {
  check_plan(plan);
  const ScoreRule rule(precision, problem.scale);
  const std::int64_t tile =
      plan.key_tile > 0 ? plan.key_tile : std::max<std::int64_t>(problem.key_len, 1);
  const std::int64_t splits = std::max<std::int64_t>(plan.key_splits, 1);
  const auto head_size = static_cast<std::size_t>(problem.key_len * problem.head_dim);
  const auto query_size = static_cast<std::size_t>(problem.query_len * problem.head_dim);
  const std::int64_t group = problem.query_heads / problem.kv_heads;

  Outputs outputs{Tensor<float>(query_shape(problem)),
                  Tensor<float>(Shape{problem.batch, problem.query_heads, problem.query_len, 1})};
  for (std::int64_t kv = 0; kv < problem.batch * problem.kv_heads; ++kv) {
    const std::size_t first = static_cast<std::size_t>(kv) * head_size;
    const auto k = inputs[forward::k].values().subspan(first, head_size);
    const auto v = inputs[forward::v].values().subspan(first, head_size);
    const SplitOperand keys(precision.score_parts, problem.element_type,
                            transposed(k, problem.head_dim), problem.key_len);
    const SplitOperand values(precision.value_parts, problem.element_type, v, problem.head_dim);
    const std::int64_t b = kv / problem.kv_heads;
    const std::int64_t first_head = kv % problem.kv_heads * group;
    for (std::int64_t h = first_head; h < first_head + group; ++h) {
      const auto q = inputs[forward::q].values().subspan(
          static_cast<std::size_t>(b * problem.query_heads + h) * query_size, query_size);
      const int of_q = scaling_exponent(precision.score_parts, q, rule.query_factor());
      const RowReplay replay(precision, rule, problem.element_type, of_q, keys, values);
      for (std::int64_t n = 0; n < problem.query_len; ++n) {
        const auto scores = replay.scores(inputs[forward::q].row(b, h, n), problem.visible_keys(n));
        std::vector<Partial> parts;
        for (std::int64_t i = 0; i < splits; ++i) {
          parts.push_back(replay.part(scores, split_range(problem.key_len, tile, splits, i), tile));
        }
        outputs[forward::lse].at(b, h, n, 0) =
            replay.finish(replay.merged(std::move(parts)), outputs[forward::o].row(b, h, n));
      }
    }
  }
  return outputs;
}

}  // namespace attest
