#include "core/attention/operation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/attention/tensor_bytes.hpp"
#include "core/base/error.hpp"

namespace attest {
namespace {

// A function-local static exists before the first registration, whatever the order of
// initialisation.
std::vector<const Operation*>& operations() {
  static std::vector<const Operation*> known;
  return known;
}

}  // namespace

std::span<const TensorSpec> Operation::inputs() const {
  const auto first_output = std::ranges::find(tensors, TensorRole::output, &TensorSpec::role);
  return tensors.first(static_cast<std::size_t>(first_output - tensors.begin()));
}

std::span<const TensorSpec> Operation::outputs() const {
  return tensors.subspan(inputs().size());
}

const TensorSpec& Operation::operator[](InputIndex index) const {
  return inputs()[index.number];
}

const TensorSpec& Operation::operator[](OutputIndex index) const {
  return outputs()[index.number];
}

bool has_tensor(const Problem& problem, InputIndex index) {
  return (*problem.operation)[index].shape(problem)[3] > 0;
}

bool has_tensor(const Problem& problem, OutputIndex index) {
  return (*problem.operation)[index].shape(problem)[3] > 0;
}

bool is_optional(const Operation& operation, OutputIndex index) {
  Problem plain;
  plain.operation = &operation;
  return !has_tensor(plain, index);
}

InputIndex holder_of(const Problem& problem, InputIndex index) {
  const TensorSpec& tensor = (*problem.operation)[index];
  return tensor.part_of == nullptr ? index : tensor.part_of(problem).value_or(index);
}

double bytes_of(const TensorSpec& tensor, const Problem& problem) {
  if (tensor.part_of != nullptr && tensor.part_of(problem)) return 0;
  const Shape shape = tensor.shape(problem);
  std::int64_t rows = shape[0] * shape[2];
  if (problem.length_seed != 0 && tensor.rows != Rows::neither) {
    rows = (tensor.rows == Rows::queries ? query_starts(problem) : key_starts(problem)).back();
  }
  const ElementType type = tensor.format(problem);
  return static_cast<double>(rows * shape[1] * units_of(type, shape[3])) *
         static_cast<double>(format_of(type).size_bytes);
}

double tensor_bytes(const Problem& problem) {
  double bytes = 0;
  for (const TensorSpec& tensor : problem.operation->tensors) bytes += bytes_of(tensor, problem);
  return bytes;
}

OperationRegistration::OperationRegistration(const Operation& operation) {
  const auto at = std::ranges::lower_bound(operations(), operation.name, {}, &Operation::name);
  operations().insert(at, &operation);
}

const std::vector<const Operation*>& all_operations() {
  return operations();
}

const Operation& operation_from_name(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Operation* operation : operations()) {
    if (operation->name == name) return *operation;
    names.push_back(operation->name);
  }
  throw InvalidInput(
      fmt::format("operation '{}' is unknown; allowed: {}", name, fmt::join(names, ", ")));
}

}  // namespace attest
