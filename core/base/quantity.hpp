#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace attest {

/// Dimension of a number. Times are in milliseconds, sizes in bytes, shares as 1 = 100 %.
enum class Dimension { number, bytes, time };
/// Name of a dimension in words: `bytes`.
[[nodiscard]] std::string_view name_of(Dimension dimension);

struct Quantity {
  double value = 0;
  Dimension dimension = Dimension::number;
};

/// The factor of a unit: B, KiB, MiB, GiB; us, ms, s, min, m (the same), h; %. Nothing for an
/// unknown one.
[[nodiscard]] std::optional<Quantity> unit_from_name(std::string_view name);
/// `B, KiB, ...`
[[nodiscard]] std::string unit_names();

/// A finite number with or without a unit, nothing before or after it: `227KiB`, `5 %`, `1e-3`.
[[nodiscard]] std::optional<Quantity> quantity_from(std::string_view text);

/// Short, and read back as the same number where it is a whole one.
[[nodiscard]] std::string format_number(double value);

}  // namespace attest
