#include "gpu/simt/warp_matrix.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "core/tensor_core_product.hpp"
#include "gpu/simt/access_check.hpp"
#include "gpu/simt/cuda_half.hpp"
#include "gpu/simt/execution.hpp"

namespace attest::simt {
namespace {

constexpr unsigned warp_size = 32;
constexpr std::uint32_t undefined_bits = 0x7fc0deadU;  // a NaN with a payload of its own

thread_local Accumulation tensor_core_of_thread = hopper();

struct Product : Collective {
  ElementType type;
  float* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
};

float value_of(ElementType type, std::uint32_t pair, unsigned half) {
  const auto bits = static_cast<std::uint16_t>(pair >> 16 * half);
  return type == ElementType::fp16 ? half_value(bits) : bfloat16_value(bits);
}

// Lane 4 g + t holds, of a: rows g and g + 8, columns 2 t, 2 t + 1 and those + 8; of b the same
// rows as columns of a, column g; of d: rows g and g + 8, columns 2 t and 2 t + 1.
void multiply(Collective* const* lanes) {
  const auto& first = *static_cast<const Product*>(lanes[0]);
  const ElementType type = first.type;
  std::array<std::array<float, 16>, 16> a;
  std::vector<float> b(16 * 8);
  std::array<std::array<float, 8>, 16> d;
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    const auto& mine = *static_cast<const Product*>(lanes[lane]);
    const unsigned g = lane / 4, t = lane % 4;
    for (unsigned h = 0; h < 2; ++h) {
      for (unsigned r = 0; r < 4; ++r)
        a[g + 8 * (r % 2)][2 * t + 8 * (r / 2) + h] = value_of(type, mine.a[r], h);
      for (unsigned r = 0; r < 2; ++r)
        b[(2 * t + 8 * r + h) * 8 + g] = value_of(type, mine.b[r], h);
      for (unsigned r = 0; r < 2; ++r) d[g + 8 * r][2 * t + h] = mine.d[2 * r + h];
    }
  }
  const ProductOperand right(std::move(b), 8, type);
  for (unsigned row = 0; row < 16; ++row)
    accumulate_tensor_core(tensor_core_of_thread, a[row], type, right, 0, d[row]);
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    auto& mine = *static_cast<Product*>(lanes[lane]);
    const unsigned g = lane / 4, t = lane % 4;
    for (unsigned h = 0; h < 2; ++h)
      for (unsigned r = 0; r < 2; ++r) mine.d[2 * r + h] = d[g + 8 * r][2 * t + h];
  }
}

struct MatrixRows : Collective {
  std::array<std::uint16_t, 8> row;  ///< what this lane's address holds
  std::uint32_t* registers;
  int count;
  bool transposed;
};

void distribute(Collective* const* lanes) {
  const auto element = [&](int matrix, unsigned row, unsigned column) {
    return static_cast<const MatrixRows*>(lanes[static_cast<unsigned>(matrix) * 8 + row])
        ->row[column];
  };
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    auto& mine = *static_cast<MatrixRows*>(lanes[lane]);
    const unsigned g = lane / 4, t = lane % 4;
    for (int i = 0; i < mine.count; ++i) {
      const std::uint32_t low = mine.transposed ? element(i, 2 * t, g) : element(i, g, 2 * t);
      const std::uint32_t high =
          mine.transposed ? element(i, 2 * t + 1, g) : element(i, g, 2 * t + 1);
      mine.registers[i] = high << 16 | low;
    }
  }
}

}  // namespace

void use_tensor_core(const Accumulation& tensor_core) {
  tensor_core_of_thread = tensor_core;
}

void mma_16x8x16(ElementType type, float* d, const std::uint32_t* a, const std::uint32_t* b,
                 const char* file, int line) {
  Product mine{{multiply}, type, d, a, b};
  warp_collective(mine, file, line);
}

void load_matrices(std::uint32_t* registers, int count, bool transposed, const void* row,
                   const char* file, int line) {
  MatrixRows mine{{distribute}, {}, registers, count, transposed};
  for (int i = 0; i < count; ++i) registers[i] = undefined_bits;
  if (lane_index() < static_cast<unsigned>(count) * 8) {
    const ProgramPoint point = point_of(__builtin_return_address(0));
    const auto address = reinterpret_cast<std::uintptr_t>(row);
    if (address % 16 != 0) {
      report_misaligned(address, 16, Access::read, point);
    } else {
      check_range(address, 16, Access::read, point);
      std::memcpy(mine.row.data(), row, 16);
    }
  }
  warp_collective(mine, file, line);
}

}  // namespace attest::simt
