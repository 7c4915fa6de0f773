#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"
#include "core/records/case.hpp"

namespace attest {

/// A way to fill the inputs of an operation. Each family exists because some bug is invisible
/// without it.
struct InputFamily {
  std::string name;
  std::string summary;             ///< one line: what it looks like and which bug it exposes
  std::vector<double> magnitudes;  ///< values of InputSpec::magnitude worth drawing, smallest first
  std::function<Inputs(const Problem&, const InputSpec&)> make;
  /// A sentence when the problem does not fit (a captured length, say). May be empty.
  std::function<std::optional<std::string>(const Problem&)> unsupported;
  /// Head dims it exists for; empty: any. Generators draw head_dim from these.
  std::vector<std::int64_t> head_dims = {};
  const Operation* operation = &forward_operation;  ///< whose inputs it fills
  /// The family fills also the inputs that Operation::complete would.
  bool is_complete = false;

  /// True if cases of the operation may have inputs of this family.
  [[nodiscard]] bool serves(const Operation& asked) const;
};

[[nodiscard]] const std::vector<InputFamily>& all_input_families();
/// The families that serve the operation, in the order of the table.
[[nodiscard]] std::vector<const InputFamily*> families_of(const Operation& operation);
/// Adds a family at run time (captured activations). Throws InvalidInput if the name is taken.
void add_input_family(InputFamily family);
/// Family of a name. Throws InvalidInput listing the known names.
[[nodiscard]] const InputFamily& input_family(std::string_view name);

/// Values of a case, rounded to the problem's element type; overflow is clamped to its largest
/// finite value.
[[nodiscard]] Inputs make_inputs(const Problem& problem, const InputSpec& spec);

}  // namespace attest
