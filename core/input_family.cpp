#include "core/input_family.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/input_fill.hpp"
#include "core/random.hpp"
#include "core/value_families.hpp"

namespace attest {
namespace {

/// Unshifted N(0, 1) queries, keys and values.
Inputs normal(const Problem& problem, const InputSpec& spec) {
  return normals_with_logits(problem, spec.seed, spec.magnitude);
}

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
  return {.q = filled(query_shape(problem), [=](const ElementPlace&) { return root; }),
          .k = filled(key_shape(problem),
                      [=, &logit_of](const ElementPlace& at) {
                        const double noise = 0.01 * random_normal(spec.seed, stream_k, at.index);
                        return sign * root * logit_of(at) * (1.0 + noise);
                      }),
          .v = normals(value_shape(problem), spec.seed, stream_v)};
}

Inputs zero_q(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = normals_with_logits(problem, spec.seed, spec.magnitude);
  inputs.q = Tensor<float>(query_shape(problem));
  return inputs;
}

Inputs constant_q(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = normals_with_logits(problem, spec.seed, spec.magnitude);
  inputs.q = filled(query_shape(problem), [&](const ElementPlace& at) {
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

/// N(0, 1) logits moved down by `magnitude`: the first dimension of Q and K holds nothing but the
/// shift, so that the others keep their differences.
Inputs negative_shift(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = normals_with_logits(problem, spec.seed, 1.0);
  const double root = std::sqrt(spec.magnitude / logit_scale(problem));
  const double sign = problem.scale < 0 ? 1.0 : -1.0;
  const auto put_first = [&](Tensor<float>& tensor, double value) {
    tensor = filled(tensor.shape(), [&, from = tensor](const ElementPlace& at) {
      return at.d == 0 ? value : from.values()[at.index];
    });
  };
  put_first(inputs.q, root);
  put_first(inputs.k, sign * root);
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

/// Keys repeat a few vectors of small whole numbers: exact ties, often at the maximum.
Inputs ties(const Problem& problem, const InputSpec& spec) {
  const auto small = [&](Stream stream, std::uint64_t index) {
    return static_cast<double>(random_below(spec.seed, stream, index, 5) - 2);
  };
  return {.q = filled(
              query_shape(problem),
              [&](const ElementPlace& at) { return small(stream_q, at.index) * spec.magnitude; }),
          .k = filled(key_shape(problem),
                      [&](const ElementPlace& at) {
                        const auto vector = static_cast<std::uint64_t>(at.n % 3);
                        return small(stream_k, vector * 4096 + static_cast<std::uint64_t>(at.d));
                      }),
          .v = filled(value_shape(problem),
                      [&](const ElementPlace& at) { return small(stream_v, at.index); })};
}

Inputs huge_logits(const Problem& problem, const InputSpec& spec) {
  const double root = std::sqrt(spec.magnitude);
  return {.q = normals(query_shape(problem), spec.seed, stream_q, root),
          .k = normals(key_shape(problem), spec.seed, stream_k, root),
          .v = normals(value_shape(problem), spec.seed, stream_v)};
}

/// One large logit for every pair: x c and the rounded m c must agree (PyTorch#121558).
Inputs equal_huge_logits(const Problem& problem, const InputSpec& spec) {
  const double root = std::sqrt(spec.magnitude);
  Inputs inputs = normals_with_logits(problem, spec.seed, spec.magnitude);
  inputs.q = filled(query_shape(problem), [=](const ElementPlace&) { return root; });
  inputs.k = filled(key_shape(problem), [=](const ElementPlace&) { return root; });
  return inputs;
}

/// Only the last quarter of the head dims is non-zero (triton#621: the first 64 dims were all that
/// counted).
Inputs late_dims(const Problem& problem, const InputSpec& spec) {
  Inputs inputs = normals_with_logits(problem, spec.seed, spec.magnitude);
  for (Tensor<float>* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
    const std::int64_t columns = tensor->shape()[3], first = columns - (columns + 3) / 4;
    *tensor = filled(tensor->shape(), [&, source = *tensor](const ElementPlace& at) {
      return at.d < first ? 0.0F : 2.0F * source.values()[at.index];
    });
  }
  return inputs;
}

/// FlashAttention-3's mix: N(0, 1) + N(0, 100) Bernoulli(0.001) [FA3 §4.3]. 100 is read as the
/// variance; magnitude 10 reads it as the standard deviation.
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
  return {.q = tensor(query_shape(problem), stream_q),
          .k = tensor(key_shape(problem), stream_k),
          .v = tensor(value_shape(problem), stream_v)};
}

/// Mostly zeros, otherwise whole numbers in [-2, 2]: sums are exact, so that only the softmax
/// rounds.
Inputs sparse_integers(const Problem& problem, const InputSpec& spec) {
  const auto tensor = [&](const Shape& shape, Stream stream) {
    return filled(shape, [=](const ElementPlace& at) {
      const std::int64_t draw = random_below(spec.seed, stream, at.index, 25);
      return draw < 5 ? static_cast<double>(draw - 2) : 0.0;
    });
  };
  return {.q = tensor(query_shape(problem), stream_q),
          .k = tensor(key_shape(problem), stream_k),
          .v = tensor(value_shape(problem), stream_v)};
}

std::vector<InputFamily>& families() {
  static std::vector<InputFamily> table{
      {"normal",
       "independent N(0, 1); logits of standard deviation `magnitude`",
       {1, 4, 16},
       normal,
       {}},
      {"zero_q",
       "all logits 0: O is the plain mean of V; shows a wrong denominator",
       {1},
       zero_q,
       {}},
      {"constant_q", "every query of a head the same vector", {1, 8}, constant_q, {}},
      {"ascending_maxima",
       "logits rise along the keys: the maximum moves in every block",
       {4, 20, 80},
       ascending_maxima,
       {}},
      {"descending_maxima",
       "logits fall along the keys: the maximum is in the first block",
       {4, 20, 80},
       descending_maxima,
       {}},
      {"all_negative",
       "all logits below -magnitude: shows zero padding and finite sentinels",
       {10, 200, 6e4, 2e10},
       all_negative,
       {}},
      {"negative_shift",
       "N(0, 1) logits moved down by `magnitude`: a finite sentinel above them empties the row",
       {50, 6e4, 5e5},
       negative_shift,
       {}},
      {"dominant_key", "one key far above the others", {10, 30, 100}, dominant_key, {}},
      {"sink", "the first key takes most of the mass, the others are flat", {3, 8}, sink, {}},
      {"ties", "repeated keys of small whole numbers: exact ties at the maximum", {1, 4}, ties, {}},
      {"huge_logits",
       "logits of standard deviation `magnitude`: overflow, one-hot rows",
       {1e2, 1e4, 1e6, 1e10},
       huge_logits,
       {}},
      {"equal_huge_logits",
       "one large logit for every pair",
       {1e2, 1e5, 1e9},
       equal_huge_logits,
       {}},
      {"constant_v",
       "V constant over the keys of a head: O is that constant",
       {1, 8},
       constant_v,
       {}},
      {"one_hot_v", "V one-hot by key: O shows the weights themselves", {1, 8}, one_hot_v, {}},
      {"positive_v",
       "V near `magnitude`: errors of the denominator do not average out; sums over keys overflow "
       "fp16",
       {1, 1e3, 6e4},
       positive_v,
       {}},
      {"key_index_v",
       "V is the number of its key: O shows which keys were read",
       {1},
       key_index_v,
       {}},
      {"alternating_v",
       "V is +magnitude and -magnitude in turn: a lost or doubled key does not average out",
       {1, 3e4},
       alternating_v,
       {}},
      {"scaled_v",
       "V times a power of two of its own for every head: another head's V shows",
       {1},
       scaled_v,
       {}},
      {"late_dims", "only the last quarter of the head dims is non-zero", {1}, late_dims, {}},
      {"outliers",
       "FlashAttention-3's mix: N(0, 1) + N(0, 100) Bernoulli(0.001)",
       {1},
       outliers,
       {}},
      {"sparse_integers",
       "mostly zeros, else whole numbers in [-2, 2]: exact sums",
       {1},
       sparse_integers,
       {}},
  };
  return table;
}

}  // namespace

const std::vector<InputFamily>& all_input_families() {
  return families();
}

void add_input_family(InputFamily family) {
  for (const InputFamily& known : families()) {
    if (known.name == family.name) {
      throw InvalidInput(fmt::format("input family '{}' exists already", family.name));
    }
  }
  families().push_back(std::move(family));
}

const InputFamily& input_family(std::string_view name) {
  std::vector<std::string> names;
  for (const InputFamily& family : families()) {
    if (family.name == name) return family;
    names.push_back(family.name);
  }
  throw InvalidInput(
      fmt::format("input family '{}' is unknown; allowed: {}", name, fmt::join(names, ", ")));
}

Inputs make_inputs(const Problem& problem, const InputSpec& spec) {
  const InputFamily& family = input_family(spec.family);
  if (family.unsupported) {
    if (const auto reason = family.unsupported(problem)) throw InvalidInput(*reason);
  }
  Inputs inputs = family.make(problem, spec);
  // Host values are fp32 already.
  if (problem.element_type == ElementType::fp32 && !spec.round_to_integers) return inputs;
  const double limit = format_of(problem.element_type).max_finite;
  for (Tensor<float>* tensor : {&inputs.q, &inputs.k, &inputs.v}) {
    for (float& value : tensor->values()) {
      double x = spec.round_to_integers ? std::nearbyint(value) : value;
      if (std::isfinite(x)) x = std::clamp(x, -limit, limit);
      value = static_cast<float>(round_to(problem.element_type, x));
    }
  }
  return inputs;
}

}  // namespace attest
