#include "cpu_reference/rounding/product_error.hpp"

#include "cpu_reference/rounding/chain_error.hpp"
#include "cpu_reference/rounding/parts_error.hpp"

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

}  // namespace attest
