#include "cpu_reference/tensor_errors.hpp"

#include <algorithm>
#include <cmath>

#include "core/records/metric.hpp"

namespace attest {
namespace {

constexpr std::int64_t most_row_cells = 32, most_column_cells = 64;

std::size_t place_of(ErrorAxis axis) {
  return axis == ErrorAxis::head ? 1 : 2;
}

/// The indices [first, last] of one axis.
template <typename T>
Tensor<T> part_of(const Tensor<T>& whole, ErrorAxis axis, std::int64_t first, std::int64_t last) {
  Shape shape = whole.shape();
  shape[place_of(axis)] = last - first + 1;
  Tensor<T> part(shape);
  const bool by_head = axis == ErrorAxis::head;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        std::ranges::copy(whole.row(b, by_head ? h + first : h, by_head ? n : n + first),
                          part.row(b, h, n).begin());
      }
    }
  }
  return part;
}

std::int64_t end_of_part(ErrorAxis axis, std::int64_t first, std::int64_t length) {
  if (axis == ErrorAxis::head || first == 0) return first;
  return std::min(2 * first, length) - 1;
}

void add_parts(ErrorAxis axis, const Tensor<double>& want, const Tensor<float>& got,
               ElementType type, const Tensor<double>* bound, std::vector<ErrorPart>& parts) {
  const std::int64_t length = want.shape()[place_of(axis)];
  for (std::int64_t first = 0, last = 0; first < length; first = last + 1) {
    last = end_of_part(axis, first, length);
    std::optional<Tensor<double>> limit;
    if (bound != nullptr) limit = part_of(*bound, axis, first, last);
    ErrorPart part{
        .axis = axis,
        .first = first,
        .last = last,
        .errors = error_profile(part_of(want, axis, first, last), part_of(got, axis, first, last),
                                type, limit ? &*limit : nullptr)};
    part.errors.largest_at[place_of(axis)] += first;
    parts.push_back(std::move(part));
  }
}

ErrorMap map_of(const Tensor<double>& want, const Tensor<float>& got) {
  const auto [B, H, N, D] = want.shape();
  ErrorMap map{.row_cells = std::min(N, most_row_cells),
               .column_cells = std::min(D, most_column_cells),
               .rmse = {}};
  const auto cells = static_cast<std::size_t>(map.row_cells * map.column_cells);
  map.rmse.resize(cells);
  std::vector<double> counts(cells);
  // The cell whose half-open range holds index i: the inverse of floor(cell N / cells).
  const auto cell_of = [](std::int64_t i, std::int64_t length, std::int64_t cells_of_axis) {
    return ((i + 1) * cells_of_axis - 1) / length;
  };
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t h = 0; h < H; ++h) {
      for (std::int64_t n = 0; n < N; ++n) {
        for (std::int64_t d = 0; d < D; ++d) {
          const auto cell = static_cast<std::size_t>(
              cell_of(n, N, map.row_cells) * map.column_cells + cell_of(d, D, map.column_cells));
          const double error = signed_error(want.at(b, h, n, d), got.at(b, h, n, d));
          map.rmse[cell] += error * error;
          counts[cell] += 1;
        }
      }
    }
  }
  for (std::size_t cell = 0; cell < cells; ++cell)
    map.rmse[cell] = std::sqrt(map.rmse[cell] / counts[cell]);
  return map;
}

}  // namespace

std::string_view name_of(ErrorAxis axis) {
  return axis == ErrorAxis::head ? "head" : "row";
}

TensorErrors tensor_errors(const Tensor<double>& want, const Tensor<float>& got, ElementType type,
                           const Tensor<double>* bound, const ErrorDetail& detail) {
  TensorErrors errors;
  static_cast<ErrorProfile&>(errors) = error_profile(want, got, type, bound);
  for (const ErrorAxis axis : detail.axes) add_parts(axis, want, got, type, bound, errors.parts);
  if (detail.map) errors.map = map_of(want, got);
  return errors;
}

}  // namespace attest
