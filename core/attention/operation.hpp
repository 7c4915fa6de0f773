#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"

namespace attest {

struct InputSpec;  // core/records/case.hpp

/// Role of a tensor: a kernel reads inputs and writes outputs.
enum class TensorRole { input, output };

/// Kind of a tensor's rows. Where entries of the batch have lengths of their own, rows of queries
/// and of keys are packed; a tensor with `neither` lies as it is, whatever the lengths and pages.
enum class Rows { queries, keys, neither };

/// One tensor of an operation: the only place that says so.
struct TensorSpec {
  std::string_view name;   ///< in JSON, in the text of layouts and in records: `q`
  std::string_view label;  ///< in sentences: `Q`
  TensorRole role = TensorRole::input;
  Rows rows = Rows::queries;
  Shape (*shape)(const Problem&) = nullptr;         ///< [entry, head, row, column]
  ElementType (*format)(const Problem&) = nullptr;  ///< of its elements in memory
  bool is_strided = true;  ///< false: contiguous in every case, and no layout speaks of it
  float absent = 0;        ///< an output: what a row reads as that does not exist
  /// The input whose first columns it is, in memory too, if the problem says so. nullptr: it is a
  /// tensor of its own.
  std::optional<InputIndex> (*part_of)(const Problem&) = nullptr;
  /// Rows are queries and columns are keys, of every entry as many as the largest has: a number a
  /// pair, with `Rows::neither`. A dimension of 1 of entries or heads is one that all share.
  bool is_of_pairs = false;
  /// Makes the values of an input that no family fills; nullptr: they are N(0, 1).
  Tensor<float> (*draw)(const Problem&, const InputSpec&) = nullptr;
};

/// Function that kernels compute. Each operation is a file of core/operations, which lists its
/// tensors, and one of cpu_reference, which knows the exact answer; whatever runs, draws, compares
/// and writes cases loops over the list.
struct Operation {
  std::string_view name;
  std::string_view summary;                  ///< one line
  std::span<const TensorSpec> tensors = {};  ///< inputs, then outputs
  /// An operation whose input families serve here, too: what they fill are the first inputs of
  /// both. What they do not fill is drawn (TensorSpec::draw). May be null: there is none.
  const Operation* extends = nullptr;
  /// Fills inputs that follow from the others, whose tensors a family made: outputs of another
  /// operation, say. May be null: there are none.
  void (*complete)(const Problem&, Inputs&) = nullptr;
  /// Brings outputs of which the order means nothing into the one that answers have, whatever they
  /// hold: whoever compares looks at them afterwards. May be null: each element has its place.
  void (*canonical)(const Problem&, Outputs&) = nullptr;
  double (*flops)(const Problem&) = nullptr;  ///< of the products
  double (*bytes)(const Problem&) = nullptr;  ///< each tensor once

  [[nodiscard]] std::span<const TensorSpec> inputs() const;
  [[nodiscard]] std::span<const TensorSpec> outputs() const;
  [[nodiscard]] const TensorSpec& operator[](InputIndex index) const;
  [[nodiscard]] const TensorSpec& operator[](OutputIndex index) const;
};

/// Calls visit(tensor, InputIndex or OutputIndex) for every tensor in order.
template <typename Visit>
void for_each_tensor(const Operation& operation, const Visit& visit) {
  std::size_t number = 0;
  for (const TensorSpec& tensor : operation.inputs()) visit(tensor, InputIndex{number++});
  number = 0;
  for (const TensorSpec& tensor : operation.outputs()) visit(tensor, OutputIndex{number++});
}

/// True if the problem has the tensor. A tensor without columns does not exist: it takes no memory,
/// and kernels get a null pointer.
[[nodiscard]] bool has_tensor(const Problem& problem, InputIndex index);
[[nodiscard]] bool has_tensor(const Problem& problem, OutputIndex index);
/// True of an output that only some problems of the operation have: those with a field that says
/// so.
[[nodiscard]] bool is_optional(const Operation& operation, OutputIndex index);

/// The input in whose memory an input lies: another one's, of which it is a part, or its own. The
/// other one comes before it.
[[nodiscard]] InputIndex holder_of(const Problem& problem, InputIndex index);

/// Bytes of all tensors of the problem's operation, each counted once.
[[nodiscard]] double tensor_bytes(const Problem& problem);

/// Makes an operation known by its name; it outlives the program.
struct OperationRegistration {
  explicit OperationRegistration(const Operation& operation);
};
/// All registered operations, sorted by name.
[[nodiscard]] const std::vector<const Operation*>& all_operations();
/// Operation of a name. Throws InvalidInput listing the names.
[[nodiscard]] const Operation& operation_from_name(std::string_view name);

}  // namespace attest
