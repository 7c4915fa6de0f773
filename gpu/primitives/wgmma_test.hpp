#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/run/device.hpp"

namespace attest {

/// A product of one warpgroup: D [64, N] = A [64, depth] B [depth, N], plus what D held where
/// `adds`.
struct ProductOperands {
  /// In device memory, 16-bit elements. In shared memory as it stands: panels
  /// (wgmma_descriptor.hpp) of [64, depth] (K-major) or [depth, 64] (MN-major); for registers [64,
  /// depth], row by row.
  const std::byte* a;
  const std::byte* b;  ///< panels of [N, depth] (K-major) or [depth, N] (MN-major)
  std::size_t a_bytes, b_bytes;
  float* d;   ///< [64, N]
  int depth;  ///< a multiple of 16
  bool adds;
};

/// A form of the instruction that wgmma_test.cu has a kernel of.
struct ProductForm {
  enum class Left { k_major, mn_major, registers };
  ElementType type;
  int width;  ///< N
  Left left;
  bool is_right_k_major;
  /// Returns without waiting.
  void (*launch)(const ProductOperands& operands, Device& device);
};
[[nodiscard]] std::span<const ProductForm> product_forms();
/// The N for which wgmma.cuh spells products.
[[nodiscard]] std::vector<int> product_widths();

/// Two groups in flight: d[0] = A B and d[1] = A C, each [64, 64] of depth 64, of which the first
/// is stored when one group may still be unfinished. bf16; a, b and c: panels of [64, 64], K-major.
void launch_two_groups(const std::byte* a, const std::byte* b, const std::byte* c, float* d,
                       Device& device);

}  // namespace attest
