#include "cpu_reference/tensor_errors.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace attest {
namespace {

/// [2, 3, N, D]: errors are exact binary fractions, another one for every row, head and column.
struct Planted {
  Tensor<double> want, bound;
  Tensor<float> got;
  Planted(std::int64_t N, std::int64_t D)
      : want({2, 3, N, D}, 1.0), bound({2, 3, N, D}, 64.0), got({2, 3, N, D}) {
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t h = 0; h < 3; ++h)
        for (std::int64_t n = 0; n < N; ++n)
          for (std::int64_t d = 0; d < D; ++d)
            got.at(b, h, n, d) = 1.0F + static_cast<float>((h + 1) * (n + 1)) * 0x1p-12F +
                                 static_cast<float>(d) * 0x1p-20F;
  }
};

TEST(TensorErrors, parts_cover_each_row_once_in_powers_of_two) {
  for (const std::int64_t N : {1, 2, 3, 7, 8, 9}) {
    const Planted planted(N, 3);
    const TensorErrors errors = tensor_errors(planted.want, planted.got, ElementType::fp32,
                                              &planted.bound, {.axes = {ErrorAxis::row}});
    std::int64_t next = 0;
    double elements = 0;
    for (const ErrorPart& part : errors.parts) {
      EXPECT_EQ(part.first, next);
      EXPECT_TRUE(part.last == part.first || part.last < 2 * part.first);
      next = part.last + 1;
      elements += part.errors.value("elements");
    }
    EXPECT_EQ(next, N);
    EXPECT_EQ(elements, errors.value("elements"));
  }
}

TEST(TensorErrors, the_largest_error_of_a_part_is_where_the_whole_tensor_has_it) {
  const Planted planted(9, 5);
  const TensorErrors errors =
      tensor_errors(planted.want, planted.got, ElementType::fp32, &planted.bound,
                    {.axes = {ErrorAxis::row, ErrorAxis::head}});
  ASSERT_EQ(errors.parts.size(), 5U + 3U);
  for (const ErrorPart& part : errors.parts) {
    const bool by_row = part.axis == ErrorAxis::row;
    const Shape at{0, by_row ? 2 : part.last, by_row ? part.last : 8, 4};  // errors grow along all
    EXPECT_EQ(part.errors.largest_at, at);
    EXPECT_EQ(part.errors.value("max_abs_error"), planted.got.at(0, at[1], at[2], 4) - 1.0);
    EXPECT_EQ(part.errors.value("error_over_bound_max"), part.errors.value("max_abs_error") / 64.0);
  }
  EXPECT_EQ(errors.parts.back().errors.largest_at, errors.largest_at);
}

TEST(TensorErrors, a_cell_of_the_map_holds_its_rows_and_columns_and_no_others) {
  for (const std::int64_t N : {1, 31, 32, 33, 67}) {
    for (const std::int64_t D : {3, 64, 65}) {
      const Tensor<double> want({2, 1, N, D}, 1.0);
      for (const std::int64_t n : {std::int64_t{0}, N / 2, N - 1}) {
        for (const std::int64_t d : {std::int64_t{0}, D / 2, D - 1}) {
          Tensor<float> got(want.shape(), 1.0F);
          got.at(1, 0, n, d) = 1.5F;
          const ErrorMap map =
              *tensor_errors(want, got, ElementType::fp32, nullptr, {.map = true}).map;
          for (std::int64_t i = 0; i < map.row_cells; ++i) {
            for (std::int64_t j = 0; j < map.column_cells; ++j) {
              const std::int64_t rows[] = {i * N / map.row_cells, (i + 1) * N / map.row_cells};
              const std::int64_t columns[] = {j * D / map.column_cells,
                                              (j + 1) * D / map.column_cells};
              const bool holds = rows[0] <= n && n < rows[1] && columns[0] <= d && d < columns[1];
              const auto elements =
                  static_cast<double>(2 * (rows[1] - rows[0]) * (columns[1] - columns[0]));
              EXPECT_EQ(map.rmse[static_cast<std::size_t>(i * map.column_cells + j)],
                        holds ? std::sqrt(0.25 / elements) : 0.0)
                  << N << " rows, row " << n << ", cell " << i;
            }
          }
        }
      }
    }
  }
}

TEST(TensorErrors, a_NaN_shows_in_its_part_and_in_its_cell) {
  const Tensor<double> want({1, 2, 5, 4}, 1.0);
  Tensor<float> got(want.shape(), 1.0F);
  got.at(0, 1, 4, 2) = std::nanf("");
  const TensorErrors errors = tensor_errors(want, got, ElementType::fp32, nullptr,
                                            {.axes = {ErrorAxis::head}, .map = true});
  EXPECT_EQ(errors.parts[0].errors.value("rmse"), 0);
  EXPECT_TRUE(std::isnan(errors.parts[1].errors.value("rmse")));
  EXPECT_TRUE(std::isnan(errors.map->rmse[4 * 4 + 2]));
  EXPECT_EQ(errors.map->rmse[4 * 4 + 1], 0);
}

}  // namespace
}  // namespace attest
