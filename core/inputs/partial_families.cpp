#include <limits>

#include "core/inputs/families.hpp"
#include "core/inputs/input_fill.hpp"
#include "core/operations/combine.hpp"

namespace attest {
namespace {

constexpr float no_key = -std::numeric_limits<float>::infinity();

/// Part and query of a row of a partial tensor.
struct PartRow {
  std::int64_t part, query;
};

PartRow part_row(const Problem& problem, std::int64_t row) {
  return {row / problem.query_len, row % problem.query_len};
}

Shape shape_of(const Problem& problem, InputIndex index) {
  return combine_operation[index].shape(problem);
}

Tensor<float> normal_outputs(const Problem& problem, const InputSpec& spec, double mean = 0) {
  return normals(shape_of(problem, combine::partial_o), spec.seed, stream_v, 1, mean);
}

/// LSE_p whose value is value(part, place).
template <typename Value>
Tensor<float> filled_lse(const Problem& problem, const Value& value) {
  return filled(shape_of(problem, combine::partial_lse),
                [&](const ElementPlace& at) { return value(part_row(problem, at.n).part, at); });
}

double normal_lse(const InputSpec& spec, const ElementPlace& at) {
  return spec.magnitude * random_normal(spec.seed, stream_q, at.index);
}

/// The row that all parts of a query share.
std::uint64_t merged_row_of(const Problem& problem, const ElementPlace& at) {
  return static_cast<std::uint64_t>((at.b * problem.query_heads + at.h) * problem.query_len +
                                    part_row(problem, at.n).query);
}

/// Parts that have seen no key hold 0.
Inputs with_empty_parts(const Problem& problem, Tensor<float> o, Tensor<float> lse) {
  const Shape shape = o.shape();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < problem.parts * problem.query_len; ++n) {
        if (lse.at(b, h, n, 0) != no_key) continue;
        for (float& value : o.row(b, h, n)) value = 0;
      }
    }
  }
  return {std::move(o), std::move(lse)};
}

}  // namespace

Inputs partial_normal(const Problem& problem, const InputSpec& spec) {
  return {normal_outputs(problem, spec),
          filled_lse(problem, [&](auto, const ElementPlace& at) { return normal_lse(spec, at); })};
}

Inputs partial_far_apart(const Problem& problem, const InputSpec& spec) {
  return {normal_outputs(problem, spec), filled_lse(problem, [&](auto, const ElementPlace& at) {
            return spec.magnitude * static_cast<double>(random_below(spec.seed, stream_choice,
                                                                     at.index, problem.parts + 1)) +
                   random_normal(spec.seed, stream_q, at.index);
          })};
}

Inputs partial_dominant(const Problem& problem, const InputSpec& spec) {
  return {normal_outputs(problem, spec),
          filled_lse(problem, [&](std::int64_t part, const ElementPlace& at) {
            const std::int64_t chosen =
                random_below(spec.seed, stream_choice, merged_row_of(problem, at), problem.parts);
            return random_normal(spec.seed, stream_q, at.index) +
                   (part == chosen ? spec.magnitude : 0.0);
          })};
}

Inputs partial_some_empty(const Problem& problem, const InputSpec& spec) {
  return with_empty_parts(problem, normal_outputs(problem, spec),
                          filled_lse(problem, [&](std::int64_t part, const ElementPlace& at) {
                            const bool is_end = part == 0 || part == problem.parts - 1;
                            const bool is_empty = random_below(spec.seed, stream_choice, at.index,
                                                               is_end ? 2 : 3) == 0;
                            return is_empty ? no_key : normal_lse(spec, at);
                          }));
}

Inputs partial_all_empty(const Problem& problem, const InputSpec& spec) {
  return with_empty_parts(problem, normal_outputs(problem, spec),
                          filled_lse(problem, [](auto, const ElementPlace&) { return no_key; }));
}

Inputs partial_copies(const Problem& problem, const InputSpec& spec) {
  return {filled(shape_of(problem, combine::partial_o),
                 [&](const ElementPlace& at) {
                   const auto column = static_cast<std::uint64_t>(at.d);
                   return random_normal(
                       spec.seed, stream_v,
                       merged_row_of(problem, at) * static_cast<std::uint64_t>(problem.head_dim) +
                           column);
                 }),
          filled_lse(problem, [&](auto, const ElementPlace& at) {
            return spec.magnitude * random_normal(spec.seed, stream_q, merged_row_of(problem, at));
          })};
}

Inputs partial_ties(const Problem& problem, const InputSpec& spec) {
  return {normal_outputs(problem, spec, 1.0),
          filled_lse(problem, [&](auto, const ElementPlace&) { return spec.magnitude; })};
}

}  // namespace attest
