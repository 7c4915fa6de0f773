#pragma once

#include <cstdint>

#include "core/attention/element_type.hpp"

namespace attest {

/// Where wgmma finds its left factor.
enum class WgmmaLeft { shared, registers };

/// d = a b + c by wgmma m64n8 in steps of 32 bytes of depth, 16 numbers of 16 bits or 8 of TF32,
/// chained without a wait between them; for each of `blocks` blocks. a [blocks, 64, depth] and b
/// [blocks, depth, 8] hold one number a word, bits in the low end, as MmaOperands; c and d [blocks,
/// 64, 8] in fp32; all on the device. `type` is fp16, bf16, or fp32 for TF32; depth is steps *
/// mma_depth(type), steps 1 or 4.
void launch_wgmma_products(ElementType type, WgmmaLeft left, const std::uint32_t* a,
                           const std::uint32_t* b, const float* c, float* d, int blocks, int steps);

}  // namespace attest
