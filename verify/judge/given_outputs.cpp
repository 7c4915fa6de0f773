#include "verify/judge/given_outputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

#include "core/attention/fused_roundings.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/device_reference.hpp"
#include "cpu_reference/reference.hpp"
#include "verify/judge/sampled_rows.hpp"

namespace attest {
namespace {

[[noreturn]] void reject(const Safetensors& file, const std::string& what) {
  throw InvalidInput(fmt::format("'{}': {}", printable(file.where(), 4096), what));
}

const SafetensorsEntry& entry_of(const Safetensors& file, std::string_view name,
                                 std::string_view why = "") {
  const SafetensorsEntry* const entry = file.find(name);
  if (entry == nullptr) reject(file, fmt::format("no tensor is called '{}'{}", name, why));
  return *entry;
}

const SafetensorsEntry& entry_of_four(const Safetensors& file, std::string_view name) {
  const SafetensorsEntry& entry = entry_of(file, name);
  if (entry.shape.size() != 4) {
    reject(file, fmt::format("'{}' has shape [{}]; allowed: [batch, heads, tokens, head_dim]", name,
                             fmt::join(entry.shape, ", ")));
  }
  return entry;
}

/// `lse` may come as [batch, heads, tokens], sinks and slopes as [heads].
Tensor<float> tensor_of(const Safetensors& file, const SafetensorsEntry& entry,
                        const Shape& shape) {
  std::vector<std::int64_t> given = entry.shape;
  if (given.size() == 3 && shape[3] == 1) given.push_back(1);
  if (given.size() == 1 && shape == Shape{1, given[0], 1, 1}) given = {1, given[0], 1, 1};
  if (!std::ranges::equal(given, shape)) {
    reject(file, fmt::format("'{}' has shape [{}]; allowed: [{}]", entry.name,
                             fmt::join(entry.shape, ", "), fmt::join(shape, ", ")));
  }
  Tensor<float> tensor(shape);
  std::ranges::copy(file.values(entry), tensor.values().begin());
  return tensor;
}

Problem problem_of(const Safetensors& file, const std::string& question) {
  const SafetensorsEntry &q = entry_of_four(file, "q"), &k = entry_of_four(file, "k"),
                         &v = entry_of_four(file, "v");
  const bool is_backward = file.find("do") != nullptr;
  std::string text = fmt::format("b{} h{}/{} q{} k{} d{} {}", q.shape[0], q.shape[1], k.shape[1],
                                 q.shape[2], k.shape[2], q.shape[3], format_of(q.type).name);
  if (v.shape[3] != q.shape[3]) text += fmt::format(" dv{}", v.shape[3]);
  if (is_backward) text += fmt::format(" {}", backward_operation.name);
  if (is_backward && file.find("dlse") != nullptr) text += " dlse_given";
  if (file.find("sinks") != nullptr) text += " sinks_given";
  if (file.find("slopes") != nullptr) text += " slopes_given";
  if (!is_backward && file.find("gate") != nullptr) text += " gate_given";
  if (!is_backward && file.find("residual") != nullptr) text += " residual_given";
  if (file.find("bias") != nullptr) {
    const SafetensorsEntry& bias = entry_of_four(file, "bias");
    const bool has_entries = bias.shape[0] != 1, has_heads = bias.shape[1] != 1;
    text += has_entries ? (has_heads ? " bias_full" : " bias_entries")
                        : (has_heads ? " bias_heads" : " bias_shared");
  }
  return problem_from_string(text + " " + question);
}

/// NaN and +infinity modify no score, and an infinite slope has no product with a distance of 0.
void require_numbers(const Safetensors& file, const Operation& operation, const Inputs& inputs) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < operation.inputs().size(); ++i) {
    const std::string_view name = operation[InputIndex{i}].name;
    const bool is_finite = name == "slopes";
    if (!is_finite && name != "sinks" && name != "bias") continue;
    const std::span<const float> values = inputs[InputIndex{i}].values();
    const auto wrong = std::ranges::find_if(
        values, [&](float x) { return !(x < infinity) || (is_finite && x == -infinity); });
    if (wrong == values.end()) continue;
    const SafetensorsEntry& entry = entry_of(file, name);
    std::vector<std::int64_t> place = entry.shape;
    std::int64_t rest = wrong - values.begin();
    for (std::size_t axis = place.size(); axis-- > 0;) {
      place[axis] = rest % entry.shape[axis];
      rest /= entry.shape[axis];
    }
    reject(file, fmt::format("'{}' holds {} at [{}]; allowed: finite numbers{}", entry.name, *wrong,
                             fmt::join(place, ", "), is_finite ? "" : " and -infinity"));
  }
}

/// O and LSE as a forward pass without errors would have saved them.
void save_exact_forward(const Problem& backward, Inputs& inputs) {
  const Problem forward = backward::forward_problem(backward);
  const Answer answer = best_answer(forward, backward::forward_inputs(backward, inputs),
                                    fused_precision(forward, usual_products(forward)));
  const auto rounded = [](const Tensor<double>& exact, ElementType type) {
    Tensor<float> tensor(exact.shape());
    std::ranges::transform(exact.values(), tensor.values().begin(),
                           [&](double value) { return static_cast<float>(round_to(type, value)); });
    return tensor;
  };
  if (inputs[backward::o].size() == 0) {
    inputs[backward::o] = rounded(answer[forward::o].value, backward.element_type);
  }
  if (inputs[backward::lse].size() == 0) {
    inputs[backward::lse] = rounded(answer[forward::lse].value, ElementType::fp32);
  }
}

Inputs inputs_of(const Safetensors& file, const Problem& problem) {
  Inputs inputs;
  bool is_whole = true;
  for (std::size_t i = 0; i < problem.operation->inputs().size(); ++i) {
    const TensorSpec& spec = problem.operation->inputs()[i];
    if (!has_tensor(problem, InputIndex{i})) {
      inputs[InputIndex{i}] = Tensor<float>(spec.shape(problem));
      continue;
    }
    const SafetensorsEntry* const entry = file.find(spec.name);
    if (entry == nullptr && (spec.name == "o" || spec.name == "lse")) {
      is_whole = false;
      continue;
    }
    inputs[InputIndex{i}] = tensor_of(file, entry_of(file, spec.name), spec.shape(problem));
  }
  require_numbers(file, *problem.operation, inputs);
  if (!is_whole) save_exact_forward(problem, inputs);
  return inputs;
}

Roundings roundings_of(const Problem& problem, bool rounds_before_epilogue) {
  const Accumulation products = usual_products(problem);
  if (problem.operation == &backward_operation) return fused_backward_roundings(problem, products);
  PrecisionPlan plan = fused_precision(problem, products);
  plan.rounds_before_epilogue = rounds_before_epilogue;
  return plan;
}

/// The first of them, of any output: a NaN is seen wherever it is.
std::vector<Shape> rows_with_nan(const Outputs& outputs) {
  constexpr std::size_t most = 4;
  std::vector<Shape> rows;
  for (const Tensor<float>& tensor : outputs) {
    const std::int64_t columns = tensor.shape()[3];
    for (std::int64_t i = 0; i < tensor.size() && rows.size() < most; ++i) {
      if (!std::isnan(tensor.values()[static_cast<std::size_t>(i)])) continue;
      const std::int64_t row = i / columns, queries = tensor.shape()[2], heads = tensor.shape()[1];
      rows.push_back({row / queries / heads, row / queries % heads, row % queries, 0});
      i = (row + 1) * columns - 1;
    }
  }
  return rows;
}

}  // namespace

bool GivenOutputs::are_within() const {
  return std::ranges::all_of(
      outputs, [](const GivenOutput& output) { return output.comparison.is_within(); });
}

bool GivenOutputs::are_decided() const {
  return std::ranges::all_of(outputs, [](const GivenOutput& output) {
    const Comparison& all = output.comparison;
    return all.elements == 0 || all.vacuous < all.elements;
  });
}

GivenOutputs judge_given_outputs(const Safetensors& file, const std::string& question,
                                 std::int64_t rows, std::uint64_t seed,
                                 bool rounds_before_epilogue) {
  GivenOutputs given{.problem = problem_of(file, question), .outputs = {}, .answer = {}};
  const Problem& problem = given.problem;
  const Operation& operation = *problem.operation;
  Outputs outputs;
  for (std::size_t i = 0; i < operation.outputs().size(); ++i) {
    const TensorSpec& spec = operation.outputs()[i];
    const SafetensorsEntry* const entry = file.find(spec.name);
    outputs[OutputIndex{i}] =
        entry == nullptr ? Tensor<float>{} : tensor_of(file, *entry, spec.shape(problem));
  }
  const Inputs inputs = inputs_of(file, problem);
  const Roundings roundings = roundings_of(problem, rounds_before_epilogue);
  const bool are_all =
      rows == 0 || rows >= problem.rows() || problem.operation != &forward_operation;
  Compared compared{.outputs = {}, .rows = problem.rows()};
  if (are_all) {
    given.answer = best_answer(problem, inputs, roundings);
    if (!reference_of(operation).certify(problem, inputs, given.answer, seed, 1).holds()) {
      throw std::logic_error("the f64 reference errs more than it says");
    }
    compared.outputs = compare_each(outputs, given.answer);
  } else {
    std::vector<Shape> some = sampled_rows(problem, seed, rows);
    std::ranges::copy(rows_with_nan(outputs), std::back_inserter(some));
    compared = compare_rows(problem, inputs, roundings.as<PrecisionPlan>(), outputs, some);
  }
  given.rows = compared.rows;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const OutputIndex index{i};
    if (file.find(operation[index].name) == nullptr) continue;
    given.outputs.push_back({.index = index, .comparison = compared.outputs[index]});
  }
  return given;
}

}  // namespace attest
