#include "core/inputs/epilogue_operands.hpp"

#include "core/inputs/input_fill.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

constexpr double large_factor = 1000, small_factor = 0x1p-14;

/// True if the operand of this seed has values of all sizes.
bool has_all_sizes(const InputSpec& spec, Stream stream) {
  return random_below(spec.seed, stream_operand_choice, stream, 2) != 0;
}

/// One of eight kinds of the element.
std::int64_t kind_of(const InputSpec& spec, Stream stream, std::uint64_t index) {
  return random_below(spec.seed, stream_operand_choice, 16 + 8 * index + stream, 8);
}

}  // namespace

Tensor<float> drawn_gate(const Problem& problem, const InputSpec& spec) {
  const bool mixed = has_all_sizes(spec, stream_gate);
  return filled(forward_operation[forward::gate].shape(problem), [&](const ElementPlace& at) {
    const double usual = random_uniform(spec.seed, stream_gate, at.index);
    if (!mixed) return usual;
    switch (kind_of(spec, stream_gate, at.index)) {
      case 0:
        return 0.0;
      case 1:
        return 1.0;
      case 2:
        return -usual;
      case 3:
        return large_factor * (2 * usual - 1);
      case 4:
        return small_factor * usual;
      default:
        return usual;
    }
  });
}

Tensor<float> drawn_residual(const Problem& problem, const InputSpec& spec) {
  const bool mixed = has_all_sizes(spec, stream_residual);
  return filled(forward_operation[forward::residual].shape(problem), [&](const ElementPlace& at) {
    const double usual = random_normal(spec.seed, stream_residual, at.index);
    if (!mixed) return usual;
    switch (kind_of(spec, stream_residual, at.index)) {
      case 0:
        return 0.0;
      case 1:
        return large_factor * usual;
      case 2:
        return small_factor * usual;
      default:
        return usual;
    }
  });
}

}  // namespace attest
