#include "gpu/simt/warp_matrix.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "core/attention/tensor_core_product.hpp"
#include "gpu/simt/access_check.hpp"
#include "gpu/simt/cuda_half.hpp"
#include "gpu/simt/execution.hpp"

namespace attest::simt {
namespace {

constexpr unsigned warp_size = 32;
constexpr std::uint32_t undefined_bits = 0x7fc0deadU;  // a NaN with a payload of its own

thread_local Accumulation tensor_core_of_thread = hopper();

struct Product : Collective {
  float* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
};

// How many columns of A, and where element (row, column) of A lies: which of the registers of lane
// 4 g + t holds it, and for 16-bit factors which half. The tables of mma.cuh.
struct Sixteen {
  static constexpr unsigned depth = 16;
  static constexpr unsigned values = 2;  ///< in a register
  static unsigned column(unsigned t, unsigned r, unsigned h) { return 2 * t + 8 * r + h; }
};
struct Half : Sixteen {
  static constexpr ElementType type = ElementType::fp16;
  static float value(std::uint32_t bits, unsigned h) {
    return half_value(static_cast<std::uint16_t>(bits >> 16 * h));
  }
};
struct Bfloat : Sixteen {
  static constexpr ElementType type = ElementType::bf16;
  static float value(std::uint32_t bits, unsigned h) {
    return bfloat16_value(static_cast<std::uint16_t>(bits >> 16 * h));
  }
};
struct TensorFloat {
  static constexpr ElementType type = ElementType::fp32;  // same exponents
  static constexpr unsigned depth = 8;
  static constexpr unsigned values = 1;
  static unsigned column(unsigned t, unsigned r, unsigned /*h*/) { return t + 4 * r; }
  static float value(std::uint32_t bits, unsigned /*h*/) {
    return std::bit_cast<float>(bits & 0xffffe000U);
  }
};

template <typename Factor>
void multiply(Collective* const* lanes) {
  constexpr unsigned depth = Factor::depth;
  std::array<std::array<float, depth>, 16> a;
  std::vector<float> b(depth * 8);
  std::array<std::array<float, 8>, 16> d;
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    const auto& mine = *static_cast<const Product*>(lanes[lane]);
    const unsigned g = lane / 4, t = lane % 4;
    for (unsigned h = 0; h < Factor::values; ++h) {
      for (unsigned r = 0; r < 4; ++r)
        a[g + 8 * (r % 2)][Factor::column(t, r / 2, h)] = Factor::value(mine.a[r], h);
      for (unsigned r = 0; r < 2; ++r)
        b[Factor::column(t, r, h) * 8 + g] = Factor::value(mine.b[r], h);
    }
    for (unsigned i = 0; i < 4; ++i) d[g + 8 * (i / 2)][2 * t + i % 2] = mine.d[i];
  }
  Accumulation tensor_core = tensor_core_of_thread;
  if (Factor::type == ElementType::fp32) tensor_core.fused_terms /= 2;
  const ProductOperand right(std::move(b), 8, Factor::type);
  for (unsigned row = 0; row < 16; ++row)
    accumulate_tensor_core(tensor_core, a[row], Factor::type, right, 0, d[row]);
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    auto& mine = *static_cast<Product*>(lanes[lane]);
    const unsigned g = lane / 4, t = lane % 4;
    for (unsigned i = 0; i < 4; ++i) mine.d[i] = d[g + 8 * (i / 2)][2 * t + i % 2];
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

namespace {

decltype(&multiply<Half>) multiply_for(ElementType type) {
  switch (type) {
    case ElementType::fp16:
      return multiply<Half>;
    case ElementType::bf16:
      return multiply<Bfloat>;
    default:
      break;
  }
  no_version_for(type);
}

}  // namespace

void mma_16x8x16(ElementType type, float* d, const std::uint32_t* a, const std::uint32_t* b,
                 const char* file, int line) {
  Product mine{{multiply_for(type)}, d, a, b};
  warp_collective(mine, file, line);
}

void mma_16x8x8_tf32(float* d, const std::uint32_t* a, const std::uint32_t* b, const char* file,
                     int line) {
  Product mine{{multiply<TensorFloat>}, d, a, b};
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
