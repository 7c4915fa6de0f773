#pragma once

#include <cstdint>

#include "core/attention/operation.hpp"
#include "core/attention/roundings.hpp"
#include "cpu_reference/answer.hpp"

namespace attest {

/// Functions that give and certify the exact answers of one operation.
struct Reference {
  const Operation* operation = nullptr;
  /// The answer with the bound of a kernel that performs the roundings. Independent of how many
  /// threads the machine has. best_answer() lets a device do the work where that pays.
  Answer (*exact)(const Problem&, const Inputs&, const Roundings&) = nullptr;
  /// Recomputes `rows` rows drawn by the seed by the definition, in 113 bits or more.
  Certificate (*certify)(const Problem&, const Inputs&, const Answer&, std::uint64_t seed,
                         int rows) = nullptr;
};

struct ReferenceRegistration {
  explicit ReferenceRegistration(const Reference& reference);
};

/// Reference of an operation. Throws std::logic_error if it has none.
[[nodiscard]] const Reference& reference_of(const Operation& operation);

}  // namespace attest
