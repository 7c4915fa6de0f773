#include <cmath>

#include "core/inputs/families.hpp"
#include "core/inputs/input_fill.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

/// N(0, 1) queries of size `size` and keys; V is value(place).
template <typename Value>
Inputs with_values(const Problem& problem, const InputSpec& spec, double size, const Value& value) {
  Inputs inputs = normals_with_logits(problem, spec.seed, size);
  inputs[forward::v] = filled(value_shape(problem), value);
  return inputs;
}

/// Number of the element's KV head among those of all batch entries.
std::int64_t kv_head_at(const Problem& problem, const ElementPlace& at) {
  return at.b * problem.kv_heads + at.h;
}

}  // namespace

Inputs constant_v(const Problem& problem, const InputSpec& spec) {
  return with_values(problem, spec, spec.magnitude,
                     [&](const ElementPlace& at) { return per_head(spec.seed, stream_v, at); });
}

Inputs one_hot_v(const Problem& problem, const InputSpec& spec) {
  return with_values(problem, spec, spec.magnitude, [&](const ElementPlace& at) {
    const double size = std::ldexp(1.0, static_cast<int>(kv_head_at(problem, at) % 8));
    return at.n % problem.output_dim() == at.d ? size : 0.0;
  });
}

Inputs positive_v(const Problem& problem, const InputSpec& spec) {
  return with_values(problem, spec, 1.0, [&](const ElementPlace& at) {
    return spec.magnitude * (1.0 + 0.1 * random_normal(spec.seed, stream_v, at.index));
  });
}

Inputs key_index_v(const Problem& problem, const InputSpec& spec) {
  return with_values(problem, spec, spec.magnitude, [&](const ElementPlace& at) {
    return static_cast<double>(at.n) + 0.25 * static_cast<double>(kv_head_at(problem, at) % 32);
  });
}

Inputs alternating_v(const Problem& problem, const InputSpec& spec) {
  return with_values(problem, spec, 1.0, [&](const ElementPlace& at) {
    const double size = std::ldexp(spec.magnitude, -static_cast<int>(kv_head_at(problem, at) % 8));
    return at.n % 2 == 0 ? size : -size;
  });
}

Inputs scaled_v(const Problem& problem, const InputSpec& spec) {
  return with_values(problem, spec, spec.magnitude, [&](const ElementPlace& at) {
    const std::int64_t exponent =
        random_below(spec.seed, stream_choice, static_cast<std::uint64_t>(kv_head_at(problem, at)),
                     17) -
        8;
    return std::ldexp(random_normal(spec.seed, stream_v, at.index), static_cast<int>(exponent));
  });
}

}  // namespace attest
