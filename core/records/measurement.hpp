#pragma once

#include <string>

namespace attest {

/// A number with its unit. `unit` is `1` for a ratio or a count.
struct Measurement {
  std::string name{};
  double value = 0;  ///< may be NaN or infinite
  std::string unit{};
};

}  // namespace attest
