#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/attention/precision_plan.hpp"
#include "core/attention/tensor_core_product.hpp"
#include "core/inputs/random.hpp"
#include "gpu/primitives/test_kernels.hpp"
#include "gpu/primitives/wgmma_descriptor.hpp"
#include "gpu/runtime/test_device.hpp"

namespace attest {
namespace {

using Left = ProductForm::Left;

// How a product of one warpgroup is asked for, from the beginning: integers so small that every sum
// is exact (but in one test), in a matrix; its image in shared memory; one launch; every element of
// D compared bit for bit. Whatever no product should read is NaN.

/// [rows, columns] of small integers, where nothing else is said.
struct Matrix {
  int rows, columns;
  std::vector<float> values;

  Matrix(int rows_, int columns_, const std::function<float(int, int)>& value)
      : rows(rows_), columns(columns_) {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) values.push_back(value(r, c));
  }
  [[nodiscard]] float at(int r, int c) const {
    return values[static_cast<std::size_t>(r * columns + c)];
  }
  [[nodiscard]] Matrix transposed() const {
    return {columns, rows, [&](int r, int c) { return at(c, r); }};
  }
};

Matrix random_integers(int rows, int columns, int limit, std::uint64_t seed) {
  return {rows, columns, [&](int r, int c) {
            const auto index = static_cast<std::uint64_t>(r * columns + c);
            return static_cast<float>(random_below(seed, 1, index, 2 * limit + 1) - limit);
          }};
}

/// Numbers whose sizes are so far apart that what is cut from a sum decides its last bits.
Matrix random_numbers(int rows, int columns, int largest_exponent, ElementType type,
                      std::uint64_t seed) {
  return {rows, columns, [&](int r, int c) {
            const auto index = static_cast<std::uint64_t>(r * columns + c);
            const auto exponent = random_below(seed, 1, index, 2 * largest_exponent + 1);
            const double size = std::ldexp(1 + random_uniform(seed, 2, index),
                                           static_cast<int>(exponent) - largest_exponent);
            const bool is_negative = random_below(seed, 3, index, 2) != 0;
            return static_cast<float>(round_to(type, is_negative ? -size : size));
          }};
}

using Image = std::vector<std::uint16_t>;

/// Image of an operand in shared memory: panels of 64 columns, chunks of 8 elements swizzled.
Image panels_of(const Matrix& m, ElementType type) {
  const int panels = (m.columns + panel_columns - 1) / panel_columns;
  Image image(static_cast<std::size_t>(panels * m.rows * panel_columns),
              static_cast<std::uint16_t>(poison_bits(type)));
  for (int r = 0; r < m.rows; ++r) {
    for (int c = 0; c < m.columns; ++c) {
      const int panel = c / panel_columns * m.rows * panel_columns;
      const int place = panel + swizzled_chunk(r, c % panel_columns / 8) / 2 + c % 8;
      image[static_cast<std::size_t>(place)] = static_cast<std::uint16_t>(encode(type, m.at(r, c)));
    }
  }
  return image;
}

Image rows_of(const Matrix& m, ElementType type) {
  Image image;
  for (const float value : m.values)
    image.push_back(static_cast<std::uint16_t>(encode(type, value)));
  return image;
}

std::string words_for(const ProductForm& form, int depth) {
  const auto major = [](bool is_k) { return is_k ? "K-major" : "MN-major"; };
  return fmt::format(
      "{} N {} depth {}, A {}, B {}", format_of(form.type).name, form.width, depth,
      form.left == Left::registers ? "in registers" : major(form.left == Left::k_major),
      major(form.is_right_k_major));
}

/// D = A B + C, exact: every partial sum is an integer below 2^24.
std::vector<float> exact_product(const Matrix& a, const Matrix& b, const std::vector<float>& c) {
  std::vector<float> d = c;
  d.resize(static_cast<std::size_t>(a.rows * b.columns));
  for (int i = 0; i < a.rows; ++i) {
    float* const row = d.data() + i * b.columns;
    for (int k = 0; k < a.columns; ++k) {
      if (a.at(i, k) == 0) continue;
      for (int j = 0; j < b.columns; ++j) row[j] += a.at(i, k) * b.at(k, j);
    }
  }
  return d;
}

/// D = A B + C as tensor cores form it, where sums are not exact.
std::vector<float> emulated_product(const Matrix& a, const Matrix& b, const std::vector<float>& c,
                                    ElementType type, const Accumulation& tensor_core) {
  std::vector<float> d = c;
  const ProductOperand right(b.values, b.columns, type);
  const auto depth = static_cast<std::size_t>(a.columns), n = static_cast<std::size_t>(b.columns);
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.rows); ++i) {
    accumulate_tensor_core(tensor_core, std::span(a.values).subspan(i * depth, depth), type, right,
                           0, std::span(d).subspan(i * n, n));
  }
  return d;
}

/// The first element that differs, in words; empty when there is none.
std::string difference(const std::vector<float>& got, const std::vector<float>& want, int columns) {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  const auto [g, w] = std::ranges::mismatch(got, want, {}, bits, bits);
  if (g == got.end()) return "";
  const auto at = static_cast<int>(g - got.begin());
  return fmt::format("row {}, column {}: {} instead of {}", at / columns, at % columns, *g, *w);
}

class GpuWgmma : public OnHopper {
 protected:
  /// D = A B, or A B + C where C is not empty. D holds NaN before a product that does not add.
  std::vector<float> product(const ProductForm& form, const Matrix& a, const Matrix& b,
                             const std::vector<float>& c = {}) {
    const auto left =
        on_device(form.left == Left::registers ? rows_of(a, form.type)
                  : form.left == Left::k_major ? panels_of(a, form.type)
                                               : panels_of(a.transposed(), form.type));
    const auto right = on_device(panels_of(form.is_right_k_major ? b.transposed() : b, form.type));
    std::vector<float> d(static_cast<std::size_t>(64 * form.width), std::nanf(""));
    if (!c.empty()) d = c;
    const auto result = on_device(d);
    form.launch({.a = bytes_of(left),
                 .b = bytes_of(right),
                 .a_bytes = left.size() * 2,
                 .b_bytes = right.size() * 2,
                 .d = result.data(),
                 .depth = a.columns,
                 .adds = !c.empty()},
                device());
    return read_back(result, device());
  }
};

TEST(WgmmaForms, SumsOfTheseNumbersTellTensorCoresApart) {
  for (const ElementType type : {ElementType::fp16, ElementType::bf16}) {
    const Matrix a = random_numbers(64, 64, 7, type, 1), b = random_numbers(64, 64, 7, type, 2);
    const Matrix c = random_numbers(64, 64, 14, ElementType::fp32, 3);
    for (const auto& [terms, bits] : {std::pair{8, 25}, {32, 25}, {16, 24}, {16, 26}}) {
      Accumulation other = hopper();
      other.fused_terms = terms;
      other.fraction_bits = bits;
      EXPECT_NE(emulated_product(a, b, c.values, type, other),
                emulated_product(a, b, c.values, type, hopper()))
          << terms << ' ' << bits;
    }
  }
}

TEST(WgmmaForms, EveryWidthIsTriedWithAInSharedMemoryAndRegistersAndWithBInBothDirections) {
  for (const int width : product_widths()) {
    std::set<bool> in_registers, is_k_major;
    for (const ProductForm& form : product_forms()) {
      if (form.width != width) continue;
      in_registers.insert(form.left == Left::registers);
      is_k_major.insert(form.is_right_k_major);
    }
    EXPECT_EQ(in_registers.size(), 2U) << width;
    EXPECT_EQ(is_k_major.size(), 2U) << width;
  }
}

TEST(WgmmaForms, BothTypesAreTriedWithAAndBInAllDirections) {
  std::set<std::tuple<ElementType, Left, bool>> tried;
  for (const ProductForm& form : product_forms())
    tried.emplace(form.type, form.left, form.is_right_k_major);
  EXPECT_EQ(tried.size(), 2U * 3 * 2);
}

TEST_F(GpuWgmma, TheIdentityTimesBIsBWithEachElementInItsPlace) {
  for (const ProductForm& form : product_forms()) {
    for (const int depth : {16, 64, 128, 256}) {
      // Integers to 256 are exact in bf16: the row of each element first, then its column.
      for (const bool is_row : {true, false}) {
        const Matrix b(depth, form.width,
                       [&](int r, int c) { return static_cast<float>(is_row ? r : c); });
        for (int first = 0; first < depth; first += 64) {
          const Matrix identity(64, depth,
                                [&](int r, int c) { return c == r + first ? 1.0F : 0.0F; });
          ASSERT_EQ(
              difference(product(form, identity, b), exact_product(identity, b, {}), form.width),
              "")
              << words_for(form, depth) << ", rows of B from " << first;
        }
      }
    }
  }
}

TEST_F(GpuWgmma, ATimesTheIdentityIsAWithEachElementInItsPlace) {
  for (const ProductForm& form : product_forms()) {
    for (const int depth : {16, 64, 128, 256}) {
      for (const bool is_row : {true, false}) {
        const Matrix a(64, depth, [&](int r, int c) { return static_cast<float>(is_row ? r : c); });
        for (int first = 0; first < depth; first += form.width) {
          const Matrix identity(depth, form.width,
                                [&](int r, int c) { return r == c + first ? 1.0F : 0.0F; });
          ASSERT_EQ(
              difference(product(form, a, identity), exact_product(a, identity, {}), form.width),
              "")
              << words_for(form, depth) << ", columns of A from " << first;
        }
      }
    }
  }
}

TEST_F(GpuWgmma, ProductsOfSmallIntegersAreExactAndWhatDHeldIsAddedOrNot) {
  for (const ProductForm& form : product_forms()) {
    for (const int depth : {16, 48, 64, 128, 256}) {
      const auto seed = static_cast<std::uint64_t>(depth * 1000 + form.width);
      const Matrix a = random_integers(64, depth, 8, seed);
      const Matrix b = random_integers(depth, form.width, 8, seed + 1);
      const Matrix c = random_integers(64, form.width, 1000, seed + 2);
      ASSERT_EQ(difference(product(form, a, b), exact_product(a, b, {}), form.width), "")
          << words_for(form, depth) << ", D held NaN";
      ASSERT_EQ(
          difference(product(form, a, b, c.values), exact_product(a, b, c.values), form.width), "")
          << words_for(form, depth) << ", D held integers";
    }
  }
}

// One step after the other, 16 products at once: what bounds of errors take for granted, and
// gpu/arithmetic establishes with the narrowest product.
TEST_F(GpuWgmma, SumsThatAreNotExactHaveTheBitsOfTheEmulation) {
  for (const ProductForm& form : product_forms()) {
    for (const int depth : {16, 64, 256}) {
      const auto seed = static_cast<std::uint64_t>(depth * 1000 + form.width);
      const Matrix a = random_numbers(64, depth, 7, form.type, seed);
      const Matrix b = random_numbers(depth, form.width, 7, form.type, seed + 1);
      const Matrix c = random_numbers(64, form.width, 14, ElementType::fp32, seed + 2);
      const std::vector<float> want = emulated_product(a, b, c.values, form.type, hopper());
      ASSERT_EQ(difference(product(form, a, b, c.values), want, form.width), "")
          << words_for(form, depth);
    }
  }
}

TEST_F(GpuWgmma, TheFirstOfTwoGroupsIsReadWhileTheSecondMayBeUnfinished) {
  const Matrix a = random_integers(64, 64, 8, 1);
  const Matrix b = random_integers(64, 64, 8, 2), c = random_integers(64, 64, 8, 3);
  const auto image = [](const Matrix& m) { return on_device(panels_of(m, ElementType::bf16)); };
  const auto a_image = image(a), b_image = image(b.transposed()), c_image = image(c.transposed());
  const DeviceBuffer<float> result{2 * 64 * 64};
  launch_two_groups(bytes_of(a_image), bytes_of(b_image), bytes_of(c_image), result.data(),
                    device());
  std::vector<float> want = exact_product(a, b, {});
  std::ranges::copy(exact_product(a, c, {}), std::back_inserter(want));
  EXPECT_EQ(difference(read_back(result, device()), want, 64), "");
}

}  // namespace
}  // namespace attest
