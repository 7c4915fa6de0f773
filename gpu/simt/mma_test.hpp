#pragma once

#include <cstdint>

#include "core/run/device.hpp"

namespace attest {

/// d [16, 8] += a [16, 16] b, one warp a block, blocks one after the other in memory. 16-bit
/// elements as bits, fp16 or bf16. `b` is [8, 16], column after column, loaded as it lies, or with
/// `b_by_rows` [16, 8], loaded transposed.
void launch_mma(Device& device, bool is_half, bool b_by_rows, const std::uint16_t* a,
                const std::uint16_t* b, float* d, int blocks);

/// rounded_to_tf32() of 32 numbers.
void launch_rounding(Device& device, const float* from, float* to);

/// What a matrix load may do wrong.
enum class MatrixLoadBug { none, unaligned_row, unwritten_row, lane_has_exited };
void launch_matrix_load(Device& device, MatrixLoadBug bug, unsigned* out);

}  // namespace attest
