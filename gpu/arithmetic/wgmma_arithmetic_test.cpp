#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string>
#include <vector>

#include "core/attention/precision_plan.hpp"
#include "core/attention/tensor_core_product.hpp"
#include "core/run/registry.hpp"
#include "gpu/arithmetic/arithmetic_kernels.hpp"
#include "gpu/arithmetic/mma_operands.hpp"
#include "gpu/runtime/device_buffer.hpp"
#include "gpu/runtime/test_device.hpp"
#include "gpu/simt/cuda_half.hpp"

namespace attest {
namespace {

using Bits = std::vector<std::uint32_t>;

/// Formats of the left and of the right factor.
struct Types {
  ElementType left, right;
};
constexpr std::array<ElementType, 3> of_mma_sync{ElementType::fp16, ElementType::bf16,
                                                 ElementType::fp32};
constexpr std::array<Types, 7> types{{{ElementType::fp16, ElementType::fp16},
                                      {ElementType::bf16, ElementType::bf16},
                                      {ElementType::fp32, ElementType::fp32},
                                      {ElementType::e4m3, ElementType::e4m3},
                                      {ElementType::e4m3, ElementType::e5m2},
                                      {ElementType::e5m2, ElementType::e4m3},
                                      {ElementType::e5m2, ElementType::e5m2}}};
constexpr std::size_t blocks = 64, rows = 64, lanes = 8;

/// Factors of `blocks` products [64, depth] [depth, 8], and what is added to them.
struct Factors {
  Types type;
  std::size_t steps;
  Bits a, b;
  std::vector<float> c;

  [[nodiscard]] std::size_t step_depth() const {
    return static_cast<std::size_t>(mma_depth(type.left));
  }
  [[nodiscard]] std::size_t depth() const { return steps * step_depth(); }
};

/// Four row blocks of mma_operands() on top of each other, `steps` of them side by side.
Factors factors(const Types& type, OperandKind kind, std::size_t steps) {
  Factors of{type, steps, {}, {}, {}};
  const MmaOperands drawn =
      mma_operands(type.left, type.right, kind, static_cast<int>(blocks * steps * 4));
  const std::size_t step = of.step_depth(), depth = of.depth();
  of.a.resize(blocks * rows * depth);
  of.b.resize(blocks * depth * lanes);
  of.c.resize(blocks * rows * lanes);
  for (std::size_t block = 0; block < blocks; ++block) {
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t k = 0; k < depth; ++k) {
        const std::size_t from = (block * steps + k / step) * 4 + row / 16;
        of.a[(block * rows + row) * depth + k] = drawn.a[(from * 16 + row % 16) * step + k % step];
      }
    }
    for (std::size_t k = 0; k < depth; ++k) {
      const std::size_t from = (block * steps + k / step) * 4;
      for (std::size_t n = 0; n < lanes; ++n)
        of.b[(block * depth + k) * lanes + n] = drawn.b[(from * step + k % step) * lanes + n];
    }
    for (std::size_t i = 0; i < rows * lanes; ++i)
      of.c[block * rows * lanes + i] = drawn.c[(block * steps * 4 + i / 128) * 128 + i % 128];
  }
  return of;
}

template <typename T>
DeviceBuffer<T> on_gpu(const std::vector<T>& values) {
  DeviceBuffer<T> buffer(values.size());
  buffer.copy_from(values);
  return buffer;
}

Bits bits_of(const std::vector<float>& values) {
  Bits bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

Bits by_wgmma(const Factors& f, WgmmaLeft left) {
  const auto a = on_gpu(f.a), b = on_gpu(f.b);
  const auto c = on_gpu(f.c);
  const DeviceBuffer<float> d(f.c.size());
  ATTEST_CUDA_CHECK(cudaMemset(d.data(), 0xff, d.size() * sizeof(float)));
  launch_wgmma_products(f.type.left, f.type.right, left, a.data(), b.data(), c.data(), d.data(),
                        static_cast<int>(blocks), static_cast<int>(f.steps));
  ATTEST_CUDA_CHECK(cudaGetLastError());
  std::vector<float> result(d.size());
  d.copy_to(result);
  return bits_of(result);
}

float value_of(ElementType type, std::uint32_t bits) {
  if (type == ElementType::fp16) return simt::half_value(static_cast<std::uint16_t>(bits));
  if (type == ElementType::bf16) return simt::bfloat16_value(static_cast<std::uint16_t>(bits));
  if (is_code(type)) return decode(type, bits);
  return std::bit_cast<float>(bits & 0xffffe000U);  // TF32
}

Bits by_model(const Factors& f, const Accumulation& accumulation) {
  std::vector<float> d = f.c;
  const std::size_t depth = f.depth();
  for (std::size_t block = 0; block < blocks; ++block) {
    std::vector<float> right(depth * lanes);
    for (std::size_t i = 0; i < right.size(); ++i)
      right[i] = value_of(f.type.right, f.b[block * depth * lanes + i]);
    const ProductOperand operand(right, lanes, f.type.right);
    std::vector<float> left(depth);
    for (std::size_t row = block * rows; row < (block + 1) * rows; ++row) {
      for (std::size_t k = 0; k < depth; ++k) left[k] = value_of(f.type.left, f.a[row * depth + k]);
      accumulate_tensor_core(accumulation, left, f.type.left, operand, 0,
                             std::span(d).subspan(row * lanes, lanes));
    }
  }
  return bits_of(d);
}

Accumulation recorded(const Types& type) {
  if (is_code(type.left)) return hopper_fp8();
  return type.left == ElementType::fp32 ? hopper_tf32() : hopper();
}

std::string words_for(const Types& type) {
  return std::string(format_of(type.left).name) + " " + std::string(format_of(type.right).name);
}
std::string words_for(const Types& type, OperandKind kind) {
  return words_for(type) + " " + std::string(name_of(kind));
}

class GpuWgmma : public OnGpu {};

TEST_F(GpuWgmma, AddsAsTheModelSaysBitForBitForEveryKindOfFactorsAlsoInChains) {
  for (const Types& type : types) {
    for (int k = 0; k < operand_kinds; ++k) {
      const auto kind = static_cast<OperandKind>(k);
      for (const std::size_t steps : {1U, 4U}) {
        const Factors f = factors(type, kind, steps);
        const Bits want = by_model(f, recorded(type));
        EXPECT_EQ(by_wgmma(f, WgmmaLeft::shared), want)
            << words_for(type, kind) << ", steps " << steps;
        EXPECT_EQ(by_wgmma(f, WgmmaLeft::registers), want)
            << words_for(type, kind) << ", steps " << steps;
      }
    }
  }
}

TEST_F(GpuWgmma, KeepsNeitherMoreNorFewerBitsAndAddsNeitherMoreNorFewerTermsAtOnce) {
  for (const Types& type : types) {
    const Factors f = factors(type, OperandKind::straddling, 4);
    const Bits got = by_wgmma(f, WgmmaLeft::shared);
    const Accumulation right = recorded(type);
    for (const int bits : {-1, 1}) {
      Accumulation wrong = right;
      wrong.fraction_bits += bits;
      EXPECT_NE(by_model(f, wrong), got) << words_for(type) << ", F = " << wrong.fraction_bits;
    }
    for (const int bits : {right.sum_bits - 1, std::min(right.sum_bits + 1, 22)}) {
      Accumulation wrong = right;
      wrong.sum_bits = bits;
      EXPECT_NE(by_model(f, wrong), got) << words_for(type) << ", sums of " << bits << " bits";
    }
    for (const int terms : {right.fused_terms / 2, right.fused_terms - 1, right.fused_terms + 1,
                            right.fused_terms * 2}) {
      Accumulation wrong = right;
      wrong.fused_terms = terms;
      EXPECT_NE(by_model(f, wrong), got) << words_for(type) << ", b = " << terms;
    }
  }
}

TEST_F(GpuWgmma, GivesTheBitsOfMmaSync) {
  const auto device = make_device(Executor::gpu);
  for (const ElementType type : of_mma_sync) {
    for (int k = 0; k < operand_kinds; ++k) {
      const Factors f = factors({type, type}, static_cast<OperandKind>(k), 1);
      Bits b;  // once for each of the four blocks of 16 rows that share it
      for (std::size_t part = 0; part < blocks * 4; ++part) {
        const auto from = f.b.begin() + static_cast<std::ptrdiff_t>(part / 4 * f.depth() * lanes);
        b.insert(b.end(), from, from + static_cast<std::ptrdiff_t>(f.depth() * lanes));
      }
      const auto a_there = on_gpu(f.a), b_there = on_gpu(b);
      const auto c_there = on_gpu(f.c);
      const DeviceBuffer<float> d(f.c.size());
      arithmetic_kernels(Executor::gpu)
          .launch_products(*device, type, a_there.data(), b_there.data(), c_there.data(), d.data(),
                           static_cast<int>(blocks * 4));
      ATTEST_CUDA_CHECK(cudaDeviceSynchronize());
      std::vector<float> want(d.size());
      d.copy_to(want);
      EXPECT_EQ(by_wgmma(f, WgmmaLeft::shared), bits_of(want))
          << words_for({type, type}, static_cast<OperandKind>(k));
    }
  }
}

}  // namespace
}  // namespace attest
