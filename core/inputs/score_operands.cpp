#include "core/inputs/score_operands.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/inputs/input_fill.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// True if the operand of this seed has values of all sizes.
bool is_mixed(const InputSpec& spec, Stream stream) {
  return random_below(spec.seed, stream_operand_choice, stream, 2) != 0;
}

std::int64_t choice(const InputSpec& spec, Stream stream, std::uint64_t index,
                    std::int64_t choices) {
  return random_below(spec.seed, stream_operand_choice, 16 + 8 * index + stream, choices);
}

}  // namespace

Tensor<float> drawn_sinks(const Problem& problem, const InputSpec& spec) {
  const double far = 100 * std::max(1.0, std::min(spec.magnitude, 1e4));
  return filled(forward_operation[forward::sinks].shape(problem), [&](const ElementPlace& at) {
    const double usual = 2 * random_normal(spec.seed, stream_sinks, at.index);
    if (!is_mixed(spec, stream_sinks)) return usual;
    switch (choice(spec, stream_sinks, at.index, 6)) {
      case 0:
        return 0.0;
      case 1:
        return minus_infinity;
      case 2:
        return far * random_uniform(spec.seed, stream_sinks, at.index);
      case 3:
        return -far * random_uniform(spec.seed, stream_sinks, at.index);
      default:
        return usual;
    }
  });
}

Tensor<float> drawn_slopes(const Problem& problem, const InputSpec& spec) {
  const auto heads = static_cast<double>(problem.query_heads);
  return filled(forward_operation[forward::slopes].shape(problem), [&](const ElementPlace& at) {
    const double of_paper = std::exp2(-8 * static_cast<double>(at.h + 1) / heads);
    if (!is_mixed(spec, stream_slopes)) return of_paper;
    const double drawn = random_uniform(spec.seed, stream_slopes, at.index);
    switch (choice(spec, stream_slopes, at.index, 6)) {
      case 0:
        return 0.0;
      case 1:
        return -drawn / 8;
      case 2:
        return 30 * drawn;
      default:
        return drawn / 2;
    }
  });
}

Tensor<float> drawn_bias(const Problem& problem, const InputSpec& spec) {
  const bool mixed = is_mixed(spec, stream_bias);
  const auto columns = static_cast<std::uint64_t>(std::max<std::int64_t>(problem.key_len, 1));
  return filled(forward_operation[forward::bias].shape(problem), [&](const ElementPlace& at) {
    const double usual = random_normal(spec.seed, stream_bias, at.index);
    if (!mixed) return usual;
    // Rows take odd numbers and pairs even ones.
    const std::uint64_t row = 2 * (at.index / columns) + 1;
    if (choice(spec, stream_bias, row, 8) == 0) return minus_infinity;
    switch (choice(spec, stream_bias, 2 * at.index, 8)) {
      case 0:
        return 0.0;
      case 1:
        return 100 * usual;
      case 2:
      case 3:
        return minus_infinity;
      default:
        return usual;
    }
  });
}

}  // namespace attest
