#include <algorithm>
#include <cmath>

#include "core/inputs/families.hpp"
#include "core/inputs/input_fill.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

/// |scale|, or 1 where it makes every logit 0, or nearly so, whatever Q and K are.
double logit_scale(const Problem& problem) {
  const double size = std::abs(problem.scale);
  return size < 1e-6 ? 1.0 : size;
}

/// Keys k_j = a_j e with a constant positive query q = e, so that the logit of key j is about a_j;
/// a little noise on K.
template <typename LogitOf>
Inputs with_logits(const Problem& problem, const InputSpec& spec, const LogitOf& logit_of) {
  const double root =
      std::sqrt(1.0 / (logit_scale(problem) * static_cast<double>(problem.head_dim)));
  const double sign = problem.scale < 0 ? -1.0 : 1.0;
  return {filled(query_shape(problem), [=](const ElementPlace&) { return root; }),
          filled(key_shape(problem),
                 [=, &logit_of](const ElementPlace& at) {
                   const double noise = 0.01 * random_normal(spec.seed, stream_k, at.index);
                   return sign * root * logit_of(at) * (1.0 + noise);
                 }),
          normals(value_shape(problem), spec.seed, stream_v)};
}

}  // namespace

Inputs normal(const Problem& problem, const InputSpec& spec) {
  return normals_with_logits(problem, spec.seed, spec.magnitude);
}

Inputs zero_q(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = normals_with_logits(problem, spec.seed, spec.magnitude);
  inputs[forward::q] = Tensor<float>(query_shape(problem));
  return inputs;
}

Inputs constant_q(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = normals_with_logits(problem, spec.seed, spec.magnitude);
  inputs[forward::q] = filled(query_shape(problem), [&](const ElementPlace& at) {
    return spec.magnitude * per_head(spec.seed, stream_q, at);
  });
  return inputs;
}

Inputs ascending_maxima(const Problem& problem, const InputSpec& spec) {
  const double step =
      spec.magnitude / static_cast<double>(std::max<std::int64_t>(1, problem.key_len));
  return with_logits(problem, spec,
                     [=](const ElementPlace& at) { return step * static_cast<double>(at.n + 1); });
}

Inputs descending_maxima(const Problem& problem, const InputSpec& spec) {
  const double step =
      spec.magnitude / static_cast<double>(std::max<std::int64_t>(1, problem.key_len));
  return with_logits(problem, spec, [=](const ElementPlace& at) {
    return spec.magnitude - step * static_cast<double>(at.n);
  });
}

Inputs all_negative(const Problem& problem, const InputSpec& spec) {
  return with_logits(problem, spec, [=](const ElementPlace& at) {
    return -spec.magnitude *
           (1.0 + 0.1 * random_uniform(spec.seed, stream_choice, static_cast<std::uint64_t>(at.n)));
  });
}

Inputs negative_shift(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = normals_with_logits(problem, spec.seed, 1.0);
  const double root = std::sqrt(spec.magnitude / logit_scale(problem));
  const double sign = problem.scale < 0 ? 1.0 : -1.0;
  const auto put_first = [&](Tensor<float>& tensor, double value) {
    tensor = filled(tensor.shape(), [&, from = tensor](const ElementPlace& at) {
      return at.d == 0 ? value : from.values()[at.index];
    });
  };
  put_first(inputs[forward::q], root);
  put_first(inputs[forward::k], sign * root);
  return inputs;
}

Inputs dominant_key(const Problem& problem, const InputSpec& spec) {
  const std::int64_t chosen =
      random_below(spec.seed, stream_choice, 0, std::max<std::int64_t>(1, problem.key_len));
  return with_logits(problem, spec, [=](const ElementPlace& at) {
    return at.n == chosen ? spec.magnitude : random_normal(spec.seed, stream_choice, at.index);
  });
}

Inputs sink(const Problem& problem, const InputSpec& spec) {
  return with_logits(problem, spec, [=](const ElementPlace& at) {
    return at.n == 0 ? spec.magnitude : 0.1 * random_normal(spec.seed, stream_choice, at.index);
  });
}

Inputs ties(const Problem& problem, const InputSpec& spec) {
  const auto small = [&](Stream stream, std::uint64_t index) {
    return static_cast<double>(random_below(spec.seed, stream, index, 5) - 2);
  };
  return {
      filled(query_shape(problem),
             [&](const ElementPlace& at) { return small(stream_q, at.index) * spec.magnitude; }),
      filled(key_shape(problem),
             [&](const ElementPlace& at) {
               const auto vector = static_cast<std::uint64_t>(at.n % 3);
               return small(stream_k, vector * 4096 + static_cast<std::uint64_t>(at.d));
             }),
      filled(value_shape(problem),
             [&](const ElementPlace& at) { return small(stream_v, at.index); })};
}

Inputs huge_logits(const Problem& problem, const InputSpec& spec) {
  const double root = std::sqrt(spec.magnitude);
  return {normals(query_shape(problem), spec.seed, stream_q, root),
          normals(key_shape(problem), spec.seed, stream_k, root),
          normals(value_shape(problem), spec.seed, stream_v)};
}

Inputs equal_huge_logits(const Problem& problem, const InputSpec& spec) {
  const double root = std::sqrt(spec.magnitude);
  Inputs inputs = normals_with_logits(problem, spec.seed, spec.magnitude);
  inputs[forward::q] = filled(query_shape(problem), [=](const ElementPlace&) { return root; });
  inputs[forward::k] = filled(key_shape(problem), [=](const ElementPlace&) { return root; });
  return inputs;
}

Inputs late_dims(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = normals_with_logits(problem, spec.seed, spec.magnitude);
  for (Tensor<float>* tensor : {&inputs[forward::q], &inputs[forward::k], &inputs[forward::v]}) {
    const std::int64_t columns = tensor->shape()[3], first = columns - (columns + 3) / 4;
    *tensor = filled(tensor->shape(), [&, source = *tensor](const ElementPlace& at) {
      return at.d < first ? 0.0F : 2.0F * source.values()[at.index];
    });
  }
  return inputs;
}

Inputs outliers(const Problem& problem, const InputSpec& spec) {
  const auto tensor = [&](const Shape& shape, Stream stream) {
    return filled(shape, [=](const ElementPlace& at) {
      const double base = random_normal(spec.seed, stream, at.index);
      const bool is_outlier =
          random_uniform(spec.seed, stream_choice + 16U * (stream + 1U), at.index) < 0.001;
      return base + (is_outlier ? 10.0 * spec.magnitude *
                                      random_normal(spec.seed, stream_outlier + 16U * (stream + 1U),
                                                    at.index)
                                : 0.0);
    });
  };
  return {tensor(query_shape(problem), stream_q), tensor(key_shape(problem), stream_k),
          tensor(value_shape(problem), stream_v)};
}

Inputs sparse_integers(const Problem& problem, const InputSpec& spec) {
  const auto tensor = [&](const Shape& shape, Stream stream) {
    return filled(shape, [=](const ElementPlace& at) {
      const std::int64_t draw = random_below(spec.seed, stream, at.index, 25);
      return draw < 5 ? static_cast<double>(draw - 2) : 0.0;
    });
  };
  return {tensor(query_shape(problem), stream_q), tensor(key_shape(problem), stream_k),
          tensor(value_shape(problem), stream_v)};
}

}  // namespace attest
