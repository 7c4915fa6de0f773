#pragma once

#include <span>
#include <string_view>

namespace attest {

/// A study of experiments/studies, which every binary carries inside.
struct ShippedStudy {
  std::string_view name;  ///< of the file, without `.yaml`
  std::string_view text;
};
/// All shipped studies, sorted by name.
[[nodiscard]] std::span<const ShippedStudy> shipped_studies();
/// nullptr for an unknown name.
[[nodiscard]] const ShippedStudy* find_shipped_study(std::string_view name);

}  // namespace attest
