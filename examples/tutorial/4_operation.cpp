// An operation: tensors, an exact answer with a bound, and how that answer is certified. What
// draws, judges, shrinks, writes and replays cases then takes it as it takes attention. Here Y = X
// + B row by row, where B has one column.
#include <array>
#include <cmath>

#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/reference.hpp"

namespace attest {
namespace tutorial_operation {

ElementType type_of(const Problem& problem) {
  return problem.element_type;
}

constexpr std::array<TensorSpec, 3> tensors{
    {{.name = "x", .label = "X", .shape = query_shape, .format = type_of},
     {.name = "b", .label = "B", .shape = lse_shape, .format = type_of},
     {.name = "y",
      .label = "Y",
      .role = TensorRole::output,
      .shape = query_shape,
      .format = type_of}}};
constinit const Operation add_bias{.name = "add_bias",
                                   .summary = "a number added to each row",
                                   .tensors = tensors,
                                   .flops = nullptr,
                                   .bytes = tensor_bytes};
constexpr InputIndex x{0}, bias{1};
constexpr OutputIndex y{0};

/// A kernel rounds each sum once.
struct OneRounding {};

/// Calls visit(b, h, n, d) for every element of Y.
template <typename Visit>
void for_each_element(const Problem& p, const Visit& visit) {
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len; ++n) {
        for (std::int64_t d = 0; d < p.head_dim; ++d) visit(b, h, n, d);
      }
    }
  }
}

/// A double holds the sum of two numbers of a format but for its last bits where their sizes are
/// far apart: that is the answer's own error. The bound is one rounding of the format more.
Answer exact(const Problem& problem, const Inputs& inputs, const Roundings& /*roundings*/) {
  const Tensor<double> zeros(query_shape(problem));
  Answer answer{OutputAnswer{zeros, zeros, zeros}};
  const ElementFormat& format = format_of(problem.element_type);
  for_each_element(problem, [&](auto b, auto h, auto n, auto d) {
    const double sum = static_cast<double>(inputs[x].at(b, h, n, d)) + inputs[bias].at(b, h, n, 0);
    answer[y].value.at(b, h, n, d) = sum;
    answer[y].own_error.at(b, h, n, d) = 0x1p-53 * std::abs(sum);
    answer[y].bound.at(b, h, n, d) =
        (format.unit_roundoff + 0x1p-24 + 0x1p-52) * std::abs(sum) + format.min_subnormal;
  });
  return answer;
}

/// Some rows again, by the definition and in more digits.
Certificate certify(const Problem& problem, const Inputs& inputs, const Answer& answer,
                    std::uint64_t seed, int rows) {
  Certificate certificate;
  for (int i = 0; i < rows && problem.rows() > 0; ++i, ++certificate.rows) {
    const std::int64_t row = random_below(seed, 1, static_cast<std::uint64_t>(i), problem.rows());
    const std::int64_t n = row % problem.query_len;
    const std::int64_t h = row / problem.query_len % problem.query_heads;
    const std::int64_t b = row / problem.query_len / problem.query_heads;
    const long double want = static_cast<long double>(inputs[x].at(b, h, n, 0)) +
                             static_cast<long double>(inputs[bias].at(b, h, n, 0));
    const long double error = std::abs(answer[y].value.at(b, h, n, 0) - want);
    if (error > answer[y].own_error.at(b, h, n, 0)) certificate.worst_ratio = 2;
  }
  return certificate;
}

const OperationRegistration operation{add_bias};
const ReferenceRegistration reference{{.operation = &add_bias, .exact = exact, .certify = certify}};

/// Runs in fp32, which is all that the kernel below takes.
void run(const Arguments& a, Device& /*device*/) {
  const auto at = [](const auto& tensor, auto b, auto h, auto n) {
    return static_cast<float*>(tensor.data) + tensor.strides.offset(b, h, n);
  };
  for_each_element(a.problem, [&](auto b, auto h, auto n, auto d) {
    at(a[y], b, h, n)[d] = static_cast<const float*>(a[x].data)[a[x].strides.offset(b, h, n) + d] +
                           static_cast<const float*>(a[bias].data)[a[bias].strides.offset(b, h, n)];
  });
}

const KernelRegistration kernel{
    {.operation = &add_bias,
     .name = "tutorial_add_bias",
     .summary = "one addition an element",
     .source = "examples/tutorial",
     .element_types = {ElementType::fp32},
     .masks = {Mask::none},
     .features = {.no_queries = true},
     .precision = [](const Problem&, const Plan&) { return OneRounding{}; },
     .plans = [](const Problem&) { return std::vector<Plan>{{}}; },
     .launch = run}};

Inputs normal(const Problem& problem, const InputSpec& spec) {
  Inputs inputs{Tensor<float>(query_shape(problem)), Tensor<float>(lse_shape(problem))};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::uint64_t index = 0;
    for (float& value : inputs[InputIndex{i}].values()) {
      value = static_cast<float>(spec.magnitude * random_normal(spec.seed, i, index++));
    }
  }
  return inputs;
}

[[maybe_unused]] const bool has_inputs = [] {
  add_input_family({.name = "normal_rows",
                    .summary = "N(0, magnitude)",
                    .magnitudes = {1, 100},
                    .make = normal,
                    .unsupported = {},
                    .operation = &add_bias});
  return true;
}();

}  // namespace tutorial_operation
}  // namespace attest
