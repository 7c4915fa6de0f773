#pragma once

#include <cstdint>

#include "core/attention/tensor_list.hpp"
#include "core/inputs/random.hpp"

// What the input families are built from.
namespace attest {

// Streams of core/inputs/random.hpp: one a tensor, further ones for choices a family makes.
// stream_rest + i: input i, where the family does not fill it and the operation does not draw it.
enum Stream : std::uint64_t {
  stream_q,
  stream_k,
  stream_v,
  stream_choice,
  stream_outlier,
  stream_sinks = 8,
  stream_slopes,
  stream_bias,
  stream_operand_choice,
  stream_gate,
  stream_residual,
  stream_rest = 16
};

/// Position of an element. `index` is its position in the contiguous tensor: the counter of its
/// random numbers.
struct ElementPlace {
  std::int64_t b, h, n, d;
  std::uint64_t index;
};

/// A tensor whose value at each place is value(place).
template <typename Value>
Tensor<float> filled(const Shape& shape, const Value& value) {
  Tensor<float> tensor(shape);
  std::uint64_t index = 0;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        for (std::int64_t d = 0; d < shape[3]; ++d, ++index) {
          tensor.values()[index] = static_cast<float>(value(ElementPlace{b, h, n, d, index}));
        }
      }
    }
  }
  return tensor;
}

inline Tensor<float> normals(const Shape& shape, std::uint64_t seed, std::uint64_t stream,
                             double size = 1.0, double mean = 0.0) {
  return filled(shape, [=](const ElementPlace& at) {
    return mean + size * random_normal(seed, stream, at.index);
  });
}

/// One number for all elements of a (batch, head), different between heads: an index map error
/// shows.
inline double per_head(std::uint64_t seed, Stream stream, const ElementPlace& at) {
  return random_normal(seed, stream, static_cast<std::uint64_t>(at.b * 1000003 + at.h));
}

/// N(0, 1) keys and values, queries of standard deviation `size`: so have the logits at the default
/// scale.
inline Inputs normals_with_logits(const Problem& problem, std::uint64_t seed, double size) {
  return {normals(query_shape(problem), seed, stream_q, size),
          normals(key_shape(problem), seed, stream_k),
          normals(value_shape(problem), seed, stream_v)};
}

}  // namespace attest
