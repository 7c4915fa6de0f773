#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/attention/select_roundings.hpp"
#include "core/attention/tensor_list.hpp"

namespace attest {

/// A score of select_operation as far as it is known: exactly, and as kernels may compute it.
/// `lowest` and `highest` are ranks, among which NaN counts as +infinity.
struct ScoreRange {
  double value = 0;      ///< in double
  double own_error = 0;  ///< of that; NaN and infinities have none
  double lowest = 0, highest = 0;

  [[nodiscard]] double rank() const {
    return value == value ? value : std::numeric_limits<double>::infinity();
  }
  /// Largest |computed - value|. Infinite where anything can come out: an intermediate can
  /// overflow.
  [[nodiscard]] double error() const {
    if (lowest == highest) return 0;
    return highest - rank() > rank() - lowest ? highest - rank() : rank() - lowest;
  }
};

/// The scores of keys of entry b for query n, each with the range that roundings leave it:
///   a dot product is off by d = kappa sum |q k| (accumulation_error) and what underflow loses; its
///   product with the scale by |scale| d, a relative u and half the smallest number;
///   max(s, 0) of s +- e lies in [max(s - e, 0), max(s + e, 0)]: where that is 0 nothing is left of
///   the error;
///   the sum over h heads is off by g(h) sum |w| max(s + e, 0), a product and h - 1 additions a
///   term in any order (chain_error), and h underflows.
/// Where an element is NaN or infinite the score follows by IEEE rules whatever the order, unless a
/// sum of the finite ones can overflow. A range is everything where an intermediate can.
[[nodiscard]] std::vector<ScoreRange> score_ranges(const Problem& problem, const Inputs& inputs,
                                                   const SelectRoundings& how, std::int64_t b,
                                                   std::int64_t n,
                                                   const std::vector<std::int64_t>& keys);

}  // namespace attest
