#include "core/base/quantity.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace attest {
namespace {

struct Unit {
  std::string_view name;
  Quantity factor;
};
constexpr std::array<Unit, 11> units{{{"B", {1, Dimension::bytes}},
                                      {"KiB", {0x1p10, Dimension::bytes}},
                                      {"MiB", {0x1p20, Dimension::bytes}},
                                      {"GiB", {0x1p30, Dimension::bytes}},
                                      {"us", {1e-3, Dimension::time}},
                                      {"ms", {1, Dimension::time}},
                                      {"s", {1e3, Dimension::time}},
                                      {"min", {6e4, Dimension::time}},
                                      {"m", {6e4, Dimension::time}},
                                      {"h", {3.6e6, Dimension::time}},
                                      {"%", {0.01, Dimension::number}}}};

}  // namespace

std::string_view name_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return "bytes";
    case Dimension::time:
      return "a time";
    case Dimension::number:
      break;
  }
  return "a number";
}

std::optional<Quantity> unit_from_name(std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return unit.factor;
  }
  return std::nullopt;
}

std::string unit_names() {
  std::string names;
  for (const Unit& unit : units) {
    if (unit.name == "m") continue;  // read, not advised
    names += fmt::format("{}{}", names.empty() ? "" : ", ", unit.name);
  }
  return names;
}

std::optional<Quantity> quantity_from(std::string_view text) {
  Quantity quantity;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quantity.value);
  if (error != std::errc{} || !std::isfinite(quantity.value)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  while (text.starts_with(' ')) text.remove_prefix(1);
  if (text.empty()) return quantity;
  const auto unit = unit_from_name(text);
  if (!unit || !std::isfinite(quantity.value * unit->value)) return std::nullopt;
  return Quantity{quantity.value * unit->value, unit->dimension};
}

std::string format_number(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

}  // namespace attest
