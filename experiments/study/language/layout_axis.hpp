#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/paging.hpp"

namespace attest {

/// An axis of studies along which the same tensors lie otherwise in memory.
struct LayoutAxis {
  std::string_view name;
  std::string_view summary;
  std::span<const std::string_view> choices = {};  ///< empty: a whole number
  double low = 0, high = 0;                        ///< of a number, both included
  double (*get)(const Paging&);                    ///< of a choice its place among them
  void (*set)(Paging&, double);

  [[nodiscard]] bool is_choice() const { return !choices.empty(); }
};
[[nodiscard]] std::span<const LayoutAxis> layout_axes();
/// nullptr for an unknown name.
[[nodiscard]] const LayoutAxis* find_layout_axis(std::string_view name);

/// A choice in words, a number in digits.
[[nodiscard]] std::string text_of(const LayoutAxis& axis, const Paging& paging);
/// Inverse; the text is one that the axis has.
void set_value(const LayoutAxis& axis, Paging& paging, std::string_view text);

}  // namespace attest
