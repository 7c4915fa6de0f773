#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/reference_f64.hpp"

namespace attest {

/// Fills q, k, v with value(tensor, index), rounded to the problem's element type.
inline Inputs fill_inputs(const Problem& problem,
                          const std::function<double(std::uint64_t, std::uint64_t)>& value) {
  Inputs inputs{Tensor<float>(query_shape(problem)), Tensor<float>(key_shape(problem)),
                Tensor<float>(value_shape(problem))};
  std::uint64_t tensor = 0;
  for (auto* values : {&inputs[forward::q], &inputs[forward::k], &inputs[forward::v]}) {
    std::uint64_t index = 0;
    for (float& x : values->values()) {
      x = static_cast<float>(round_to(problem.element_type, value(tensor, index++)));
    }
    ++tensor;
  }
  return inputs;
}
inline Inputs normal_inputs(const Problem& problem, double q_size = 1, double v_size = 1) {
  return fill_inputs(problem, [=](std::uint64_t tensor, std::uint64_t index) {
    return (tensor == 0 ? q_size : tensor == 2 ? v_size : 1) * random_normal(3, tensor, index);
  });
}

inline PrecisionPlan plan_for(const Problem& problem) {
  PrecisionPlan plan;
  plan.blocks = 3;
  plan.normaliser_chain = std::max<std::int64_t>(problem.key_len, 1);
  return plan;
}

/// Every mask, no keys, one key and ragged lengths.
inline std::vector<Problem> odd_problems() {
  std::vector<Problem> problems;
  for (const Mask mask : all_masks()) {
    for (const std::int64_t keys : {0, 1, 2, 15, 33, 67}) {
      problems.push_back({.batch = 2,
                          .query_heads = 6,
                          .kv_heads = 2,
                          .query_len = 35,
                          .key_len = keys,
                          .head_dim = 19,
                          .mask = mask,
                          .scale = 0.3F});
    }
    problems.push_back({.query_heads = 2,
                        .kv_heads = 1,
                        .query_len = 1,
                        .key_len = 130,
                        .head_dim = 1,
                        .mask = mask});
    problems.push_back({.query_len = 131, .key_len = 131, .head_dim = 64, .mask = mask});
    for (const float softcap : {0.0F, 0.5F, 30.0F}) {
      problems.push_back({.batch = 7,
                          .query_heads = 2,
                          .kv_heads = 1,
                          .query_len = 70,
                          .key_len = 90,
                          .head_dim = 12,
                          .value_dim = 20,
                          .mask = mask,
                          .softcap = softcap,
                          .length_seed = 5,
                          .padding_seed = softcap > 1 ? 0U : 9U});
    }
    if (is_window(mask)) {
      const std::size_t count = problems.size();
      for (std::size_t i = 0; i < count; ++i) {
        if (problems[i].mask != mask) continue;
        problems.push_back(problems[i]);
        problems.back().window = {.left = 17, .right = static_cast<std::int64_t>(i % 4) - 1};
      }
    }
  }
  return problems;
}

}  // namespace attest
