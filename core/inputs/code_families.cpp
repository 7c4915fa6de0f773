#include <cmath>

#include "core/attention/operation.hpp"
#include "core/inputs/families.hpp"
#include "core/inputs/input_fill.hpp"
#include "core/operations/quantised.hpp"

namespace attest {
namespace {

/// N(0, 1) inputs, logits of standard deviation `magnitude`, as codes and scales.
Inputs quantised_normals(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = normals_with_logits(problem, spec.seed, spec.magnitude);
  quantised_operation.complete(problem, inputs);
  return inputs;
}

void fill_with_all_codes(Tensor<float>& tensor, ElementType type, std::uint64_t seed) {
  if (!is_code(type)) return;
  // An odd step meets all of 256, and of 16.
  const std::uint64_t first = random_bits(seed, stream_choice, 0), step = 2 * (first % 64) + 1;
  std::uint64_t number = first;
  for (float& code : tensor.values()) {
    const float value = decode(type, static_cast<std::uint32_t>(number % pattern_count(type)));
    code = std::isfinite(value) ? value : 0.0F;
    number += step;
  }
}

}  // namespace

Inputs offset_v(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = normals_with_logits(problem, spec.seed, 1);
  for (float& x : inputs[quantised::v].values()) x += static_cast<float>(spec.magnitude);
  return inputs;
}

Inputs channel_means_k(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = normals_with_logits(problem, spec.seed, 1);
  Tensor<float>& keys = inputs[quantised::k];
  const Shape& shape = keys.shape();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        for (std::int64_t d = 0; d < shape[3]; ++d) {
          const auto column = static_cast<std::uint64_t>((b * shape[1] + h) * shape[3] + d);
          keys.at(b, h, n, d) += static_cast<float>(
              spec.magnitude * random_normal(spec.seed, stream_choice + 16U, column));
        }
      }
    }
  }
  return inputs;
}

Inputs all_codes(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = quantised_normals(problem, spec);
  for (const InputIndex index : {quantised::k, quantised::v}) {
    fill_with_all_codes(inputs[index], quantised_operation[index].format(problem),
                        spec.seed + index.number);
  }
  return inputs;
}

Inputs distinct_scales(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = quantised_normals(problem, spec);
  const auto spread = [&](InputIndex index, int step, int many) {
    int number = 0;
    for (float& scale : inputs[index].values()) {
      scale = std::ldexp(scale, number % many - many / 2);
      number += step;
    }
  };
  spread(quantised::q_scale, 2, 5);
  spread(quantised::k_scale, 3, 7);
  spread(quantised::v_scale, 5, 21);
  return inputs;
}

}  // namespace attest
