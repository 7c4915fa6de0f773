#pragma once

#include <cmath>
#include <string_view>

#include "gpu/model/cost_model.hpp"

// What the tests of the cost model share.
namespace attest {

inline constexpr double kib = 1024;
inline constexpr double mib = 1024 * kib;
inline constexpr double gib = 1024 * mib;

inline Problem problem(std::string_view text) {
  return problem_from_string(text);
}

/// The documents do not count LSE.
inline double without_lse(const Traffic& traffic) {
  return traffic.total() - traffic.lse;
}

inline double standard_law(const Problem& p) {
  return without_lse(traffic_without_cache(Dataflow::standard, p, {.query_tile = p.query_len}));
}

/// `value` to `digits` significant decimal digits, as documents quote it.
inline double rounded(double value, int digits) {
  const double unit = std::pow(10, std::floor(std::log10(value)) + 1 - digits);
  return static_cast<double>(std::llround(value / unit));
}

}  // namespace attest
