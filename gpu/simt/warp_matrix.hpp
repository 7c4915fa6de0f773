#pragma once

#include <cstdint>

#include "core/attention/element_type.hpp"
#include "core/attention/precision_plan.hpp"

// What a warp does together with small matrices: ldmatrix and mma.sync. gpu/primitives/mma.cuh is
// what kernels call; PTX ISA, warp-level matrix instructions, defines the fragments.
namespace attest::simt {

/// Sets the tensor cores that mma_16x8x16 on this OS thread stands for, until the next call.
/// Default: hopper().
void use_tensor_core(const Accumulation& tensor_core);

/// d [16, 8] in fp32 += a [16, 16] b [16, 8] in fp16 or bf16, by accumulate_tensor_core(). Each
/// lane holds fragments: 4 registers of d, 4 of a, 2 of b, two 16-bit values a register.
void mma_16x8x16(ElementType type, float* d, const std::uint32_t* a, const std::uint32_t* b,
                 const char* file, int line);

/// d [16, 8] in fp32 += a [16, 8] b [8, 8] in TF32, fp32 values whose low 13 bits are ignored. A
/// step adds half as many products as with 16-bit factors [MMA-Sim].
void mma_16x8x8_tf32(float* d, const std::uint32_t* a, const std::uint32_t* b, const char* file,
                     int line);

/// ldmatrix: `count` (1, 2 or 4) matrices of 8 rows of 16 bytes in shared memory. Lane 8 i + r
/// gives the address of row r of matrix i, and register i of every lane receives its two elements
/// of that matrix: of row lane / 4, or with `transposed` of column lane / 4.
void load_matrices(std::uint32_t* registers, int count, bool transposed, const void* row,
                   const char* file, int line);

}  // namespace attest::simt
