#include "cpu_reference/rounding/product_error.hpp"

#include <limits>

#include "cpu_reference/rounding/chain_error.hpp"
#include "cpu_reference/rounding/stored_rounding.hpp"

namespace attest {
double product_error(const Accumulation& how, const Parts& parts, double terms, double sums,
                     bool is_one_sum, const Arithmetic& arithmetic) {
  const double chain = accumulation_error(how, terms, sums, arithmetic);
  if (parts.format == Parts::Format::whole) return chain;
  const PartsError error = parts_error(parts);
  if (error.products == 1) return error.relative + error.large * chain;
  const double all = error.large + error.small;
  if (!is_one_sum) {
    return error.relative +
           all * accumulation_error(how, error.products * terms, error.products * sums, arithmetic);
  }
  const double of_small = accumulation_error(how, (error.products - 1) * terms, sums, arithmetic);
  return error.relative + error.small * of_small +
         all * (chain + arithmetic.unit_roundoff * (1 + chain));
}

PartsError parts_error(const Parts& parts) {
  const auto size = [&](int i) {
    return i == 0 ? 1 + rest_of(parts, 1) : rest_of(parts, i) + rest_of(parts, i + 1);
  };
  const double rest = rest_of(parts, parts.count);
  PartsError error{rest * (2 + rest), 0, size(0) * size(0), 0};
  for (int i = 0; i < parts.count; ++i) {
    for (int j = 0; j < parts.count; ++j) {
      if (i + j >= parts.count) {
        error.relative += size(i) * size(j);
      } else {
        error.small += i + j > 0 ? size(i) * size(j) : 0;
        error.products += 1;
      }
    }
  }
  return error;
}

double tensor_floor(const Parts& parts, double largest) {
  if (parts.scaled_to > 0) return part_floor(parts) * largest / parts.scaled_to;
  return largest < stored_rounding(part_format(parts.format)).overflow
             ? part_floor(parts)
             : std::numeric_limits<double>::infinity();
}

double product_floor(const Parts& parts, double largest_x, double largest_y) {
  const double of_x = tensor_floor(parts, largest_x);
  const double of_y = tensor_floor(parts, largest_y);
  if (!(of_x + of_y < std::numeric_limits<double>::infinity())) return of_x + of_y;
  return largest_x * of_y + largest_y * of_x + of_x * of_y;
}

double floor_share(const Parts& parts, double chain) {
  return (1 + 4 * rest_of(parts, 1)) * (1 + chain);
}

}  // namespace attest
