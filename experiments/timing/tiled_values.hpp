#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/attention/operation.hpp"
#include "core/records/case.hpp"

namespace attest {

/// Values for a tensor of any size: some numbers, repeated.
class TiledValues {
 public:
  /// `values` is not empty; each is exactly representable in `type`.
  TiledValues(ElementType type, std::vector<float> values);

  /// Elements from unit `first` on: from an element, and where the type has two in a byte, from a
  /// byte (ElementFormat::elements_in_unit).
  void copy(std::int64_t first, std::span<float> to) const;
  /// The numbers as a kernel reads them, as often as it takes for whole units: once or twice.
  [[nodiscard]] std::span<const std::byte> bytes() const { return encoded_; }
  /// The numbers times `factor`, a power of two or its negative, rounded to the type.
  [[nodiscard]] TiledValues times(float factor) const;

 private:
  ElementType type_;
  std::vector<float> values_;
  std::vector<std::byte> encoded_;
};

/// True if the input is what another operation gives for the others, as O and LSE are of a backward
/// pass.
[[nodiscard]] bool follows_from_others(const Operation& operation, InputIndex input);

/// The inputs of a problem as they lie in memory, by number in the operation.
using TiledInputs = std::vector<std::shared_ptr<const TiledValues>>;
/// Values for the inputs of a problem. A million numbers of the family `normal` are drawn and
/// repeated; the period is a prime, so that rows and heads do not repeat with it.
/// Codes are drawn as the codes of such numbers, and their scales apart. Of any other
/// family the values of one KV head and the query heads that use it are drawn, and all heads of all
/// entries of the batch get these. Drawn millions are kept for the next problem. Inputs that follow
/// from others are null for the family `normal`: millions of rows would take minutes. Throws
/// InvalidInput when the family does not fit.
[[nodiscard]] TiledInputs tiled_inputs(const Problem& problem, const InputSpec& spec);

}  // namespace attest
