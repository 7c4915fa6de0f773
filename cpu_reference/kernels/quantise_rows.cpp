// The quantiser on the CPU as it is written down, group by group: the largest magnitude, the scale,
// the codes. Bugs of quantisers are planted in it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/attention/stored_row.hpp"
#include "core/operations/quantise_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/kernels/tensor_rows.hpp"

namespace attest {
namespace {

/// Rows and columns of a head that share a scale.
struct Group {
  std::int64_t first_row, last_row, first_column, last_column;  ///< the last are not in it
};

/// Group of a head with so many rows, by the place of its scale.
Group group_at(const QuantiseArguments& a, std::int64_t rows, std::int64_t row,
               std::int64_t column) {
  const std::int64_t columns = a.problem.head_dim;
  switch (a.problem.codes.k_scales) {
    case Scales::none:
    case Scales::head:
      break;
    case Scales::block:
      return {row * scale_block, std::min(rows, (row + 1) * scale_block), 0, columns};
    case Scales::row:
      return {row, std::min(rows, row + 1), 0, columns};
    case Scales::column:
      return {0, rows, column, column + 1};
  }
  return {0, rows, 0, columns};
}

/// The rows of one head as they are kept: X in fp32 and its codes' numbers.
struct Head {
  std::int64_t entry, head, rows;
  std::vector<float> x, codes;  ///< [rows, columns]
};

Head read_head(const QuantiseArguments& a, std::int64_t entry, std::int64_t head) {
  const EntryRows rows{a.stored_entry(entry), a.first_row(entry), a.rows_of(entry)};
  Head result{entry, head, rows.count, {}, {}};
  result.x = read_rows(a.x, a.x_strides, a.problem.element_type, rows, head, a.problem.head_dim);
  result.codes.resize(result.x.size());
  return result;
}

void write_codes(const QuantiseArguments& a, const Head& head, ElementType code) {
  const std::int64_t columns = a.problem.head_dim;
  for (std::int64_t n = 0; n < head.rows; ++n) {
    const std::int64_t at =
        a.code_strides.offset(a.stored_entry(head.entry), head.head, a.first_row(head.entry) + n);
    const float* const numbers = head.codes.data() + n * columns;
    store_row(reinterpret_cast<std::byte*>(a.codes) + at, code, static_cast<std::size_t>(columns),
              [&](std::size_t c) { return encode(code, numbers[c]); });
  }
}

/// Largest finite magnitude of a group.
float largest_in(const QuantiseArguments& a, const Head& head, const Group& group) {
  const std::int64_t columns = a.problem.head_dim;
  float amax = 0;
  for (std::int64_t n = group.first_row; n < group.last_row; ++n) {
    for (std::int64_t c = group.first_column; c < group.last_column; ++c) {
      const float x = head.x[static_cast<std::size_t>(n * columns + c)];
      if (std::isfinite(x)) amax = std::max(amax, std::abs(x));
    }
  }
  return amax;
}

void convert(const QuantiseArguments& a, Head& head, const Group& group, float scale,
             ElementType code) {
  const std::int64_t columns = a.problem.head_dim;
  for (std::int64_t n = group.first_row; n < group.last_row; ++n) {
    for (std::int64_t c = group.first_column; c < group.last_column; ++c) {
      const auto at = static_cast<std::size_t>(n * columns + c);
      const float quotient = head.x[at] / scale;
      head.codes[at] = static_cast<float>(round_to(code, quotient));
    }
  }
}

/// fl(amax / M), or 1.
float quotient_for(float amax, ElementType code) {
  const float scale = amax / static_cast<float>(format_of(code).max_finite);
  return scale == 0 ? 1 : scale;
}

/// The power of two for ue8m0: the one above amax, and one less while M times that is enough.
float power_for(float amax, ElementType code) {
  if (amax == 0) return 1;
  const double largest = format_of(code).max_finite;
  int exponent = std::min(std::ilogb(amax), 127) + 1;
  while (std::ldexp(largest, exponent - 1) >= static_cast<double>(amax)) --exponent;
  return std::ldexp(1.0F, std::max(exponent, -127));
}

void write_scale(const QuantiseArguments& a, std::int64_t at, float scale) {
  const ElementType format = format_of_scales(a.problem.codes);
  const std::size_t size = format_of(format).size_bytes;
  store_unit(static_cast<std::byte*>(a.scales) + static_cast<std::size_t>(at) * size,
             encode(format, scale), size);
}

void quantise_head(const QuantiseArguments& a, std::int64_t entry, std::int64_t h) {
  const ElementType code = format_with(a.problem.codes.k, a.problem.element_type);
  const bool is_power = a.problem.codes.scale_format == ScaleFormat::ue8m0;
  Head head = read_head(a, entry, h);
  if (a.scales == nullptr) convert(a, head, group_at(a, head.rows, 0, 0), 1, code);
  for (std::int64_t row = 0; a.scales != nullptr && row < a.scale_rows; ++row) {
    for (std::int64_t column = 0; column < a.scale_columns; ++column) {
      const Group group = group_at(a, head.rows, row, column);
      const float amax = largest_in(a, head, group);
      const float scale = is_power ? power_for(amax, code) : quotient_for(amax, code);
      write_scale(a, a.first_scale(entry, h) + row * a.scale_columns + column, scale);
      convert(a, head, group, scale, code);
    }
  }
  write_codes(a, head, code);
}

void run(const QuantiseArguments& a, Device& /*device*/) {
  for (std::int64_t entry = 0; entry < a.problem.batch; ++entry) {
    for (std::int64_t h = 0; h < a.problem.kv_heads; ++h) quantise_head(a, entry, h);
  }
}

KernelInfo kernel() {
  KernelInfo info;
  info.operation = &quantise_operation;
  info.name = "quantise_rows";
  info.summary = "codes and scales of every kind, group by group";
  info.source = "claims N2";
  info.executor = Executor::cpu;
  info.element_types.assign(all_element_types().begin(), all_element_types().end());
  info.masks = {Mask::none};
  info.features = {.lengths = true, .ue8m0_scales = true};
  info.layout_needs.takes_entry_gaps = true;
  info.layout_needs.takes_broadcast = true;
  info.codes.k = {Code::e4m3, Code::e5m2, Code::int8, Code::e2m1, Code::int4};
  info.codes.k_scales = {Scales::none, Scales::head, Scales::block, Scales::row, Scales::column};
  info.precision = [](const Problem&, const Plan&) { return DefinedRoundings{}; };
  info.plans = [](const Problem&) { return std::vector<Plan>{{}}; };
  info.launch = run;
  return info;
}

const KernelRegistration registration(kernel());

}  // namespace
}  // namespace attest
