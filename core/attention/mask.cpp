#include "core/attention/mask.hpp"

#include <fmt/format.h>

#include <array>

#include "core/base/error.hpp"

namespace attest {
namespace {

constexpr std::array<Mask, 5> masks{Mask::none, Mask::causal_top_left, Mask::causal_bottom_right,
                                    Mask::window_top_left, Mask::window_bottom_right};
constexpr std::array<std::string_view, 5> mask_names{
    "none", "causal_top_left", "causal_bottom_right", "window_top_left", "window_bottom_right"};

}  // namespace

std::string_view name_of(Mask mask) {
  return mask_names[static_cast<std::size_t>(mask)];
}
std::span<const Mask> all_masks() {
  return masks;
}
std::span<const Mask> prefix_masks() {
  return std::span(masks).first<3>();
}

Mask mask_from_name(std::string_view name) {
  for (const Mask mask : masks) {
    if (name_of(mask) == name) return mask;
  }
  throw InvalidInput(
      fmt::format("mask '{}' is unknown; allowed: {}", name, fmt::join(mask_names, ", ")));
}

}  // namespace attest
