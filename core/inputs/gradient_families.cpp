#include <cmath>

#include "core/inputs/families.hpp"
#include "core/inputs/input_fill.hpp"
#include "core/inputs/score_operands.hpp"
#include "core/operations/backward.hpp"

namespace attest {
namespace {

/// Q, K and V N(0, 1), logits of standard deviation `logits`; dO, and dLSE where it is given, are
/// gradient(tensor, place); O and LSE are zeros.
template <typename Gradient>
Inputs with_gradient(const Problem& problem, const InputSpec& spec, const Gradient& gradient,
                     double logits = 1) {
  Inputs inputs = normals_with_logits(problem, spec.seed, logits);
  inputs[backward::o] = Tensor<float>(output_shape(problem));
  inputs[backward::lse] = Tensor<float>(lse_shape(problem));
  for (const InputIndex tensor : {backward::d_o, backward::d_lse}) {
    inputs[tensor] = filled(backward_operation[tensor].shape(problem),
                            [&](const ElementPlace& at) { return gradient(tensor, at); });
  }
  inputs[backward::sinks] = drawn_sinks(problem, spec);
  inputs[backward::slopes] = drawn_slopes(problem, spec);
  inputs[backward::bias] = drawn_bias(problem, spec);
  return inputs;
}

auto normal_gradient(const InputSpec& spec, double size = 1) {
  return [=](InputIndex tensor, const ElementPlace& at) {
    return size * random_normal(spec.seed, stream_rest + tensor.number, at.index);
  };
}

/// Rounds Q, K and V as memory holds them, so that O and LSE are those of what a kernel reads.
void round_attention(const Problem& problem, Inputs& inputs) {
  for (const InputIndex index : {backward::q, backward::k, backward::v}) {
    for (float& x : inputs[index].values()) {
      x = static_cast<float>(round_to(problem.element_type, x));
    }
  }
}

std::uint64_t number_of_head(const Problem& problem, const ElementPlace& at) {
  return static_cast<std::uint64_t>(at.b * problem.query_heads + at.h);
}

double whole_number(const InputSpec& spec, std::uint64_t stream, const ElementPlace& at) {
  return static_cast<double>(random_below(spec.seed, stream, at.index, 9) - 4);
}

}  // namespace

Inputs gradient_zero(const Problem& problem, const InputSpec& spec) {
  return with_gradient(problem, spec, [](InputIndex, const ElementPlace&) { return 0.0; });
}

Inputs gradient_one_hot(const Problem& problem, const InputSpec& spec) {
  return with_gradient(problem, spec, [&](InputIndex tensor, const ElementPlace& at) {
    const std::uint64_t head = number_of_head(problem, at);
    const std::int64_t columns = backward_operation[tensor].shape(problem)[3];
    const bool is_hot =
        at.n == random_below(spec.seed, stream_choice, 2 * head, problem.query_len) &&
        at.d == random_below(spec.seed, stream_choice, 2 * head + 1, columns);
    return is_hot ? spec.magnitude : 0.0;
  });
}

Inputs gradient_integers(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = with_gradient(problem, spec, [&](InputIndex tensor, const ElementPlace& at) {
    return whole_number(spec, stream_rest + tensor.number, at);
  });
  inputs[backward::v] = filled(value_shape(problem), [&](const ElementPlace& at) {
    return whole_number(spec, stream_v, at);
  });
  return inputs;
}

Inputs gradient_scaled(const Problem& problem, const InputSpec& spec) {
  return with_gradient(problem, spec, normal_gradient(spec, spec.magnitude));
}

Inputs gradient_along_o(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = with_gradient(problem, spec, normal_gradient(spec), spec.magnitude);
  round_attention(problem, inputs);
  backward_operation.complete(problem, inputs);
  inputs[backward::d_o] = inputs[backward::o];
  return inputs;
}

Inputs gradient_mean_kv(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = with_gradient(problem, spec, normal_gradient(spec));
  const auto with_means = [&](const Shape& shape, Stream stream) {
    return filled(shape, [=](const ElementPlace& at) {
      const auto column = static_cast<std::uint64_t>(at.h * shape[3] + at.d);
      return random_normal(spec.seed, stream, at.index) +
             spec.magnitude * random_normal(spec.seed, stream_choice + stream, column);
    });
  };
  inputs[backward::k] = with_means(key_shape(problem), stream_k);
  inputs[backward::v] = with_means(value_shape(problem), stream_v);
  return inputs;
}

Inputs gradient_inexact_saved(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = with_gradient(problem, spec, normal_gradient(spec));
  round_attention(problem, inputs);
  backward_operation.complete(problem, inputs);
  const auto moved = [&](InputIndex index, double relative, double absolute) {
    std::uint64_t i = 0;
    for (float& x : inputs[index].values()) {
      const double step = random_normal(spec.seed, stream_rest + index.number, i++);
      if (std::isfinite(x)) x += static_cast<float>(step * (relative * std::abs(x) + absolute));
    }
  };
  moved(backward::o, 0x1p-8, 0);
  moved(backward::lse, 0, 0x1p-10 * spec.magnitude);
  return inputs;
}

}  // namespace attest
