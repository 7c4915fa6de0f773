#pragma once

namespace attest {

/// Order and precision in which a matrix product adds its terms to an fp32 accumulator.
struct Accumulation {
  enum class Kind { fp32_fma, tensor_core } kind = Kind::fp32_fma;
  int fused_terms = 1;     ///< b: products that one tensor-core step adds exactly
  int fraction_bits = 24;  ///< F: bits kept when the terms are aligned to the largest
  int sum_bits = 23;       ///< fraction bits that a step's sum keeps; 23: all that fp32 has
};

/// Tensor cores by architecture, for 16-bit inputs and fp32 accumulators: b products and the
/// accumulator are aligned to the largest of them, cut at F fraction bits, added, and the sum is
/// cut to fp32. Sources: Fasi, Higham, Mikaitis, Pranesh, PeerJ CS 7:e330 (2021) for Volta, Turing
/// and Ampere; MMA-Sim, arXiv 2511.10909; Khattak and Mikaitis, arXiv 2512.07004 (bit-exact on
/// Ada, Hopper and Blackwell). For fp16, and for bf16 where it exists (Ampere on).
[[nodiscard]] Accumulation volta();      ///< b = 4, F = 23
[[nodiscard]] Accumulation turing();     ///< b = 4, F = 24; MMA-Sim has b = 8, which costs less
[[nodiscard]] Accumulation ampere();     ///< b = 8, F = 24
[[nodiscard]] Accumulation ada();        ///< b = 8, F = 24
[[nodiscard]] Accumulation hopper();     ///< b = 16, F = 25
[[nodiscard]] Accumulation blackwell();  ///< b = 16, F = 25
/// Tensor cores of Hopper for TF32 factors: b = 8, F = 25, as recorded on an H200 (gpu/arithmetic).
[[nodiscard]] Accumulation hopper_tf32();
/// wgmma of e4m3 and e5m2, mixed as well: b = 32, F = 13, and the sum is cut to 13 bits, as
/// recorded on an H100 and an H200 (gpu/arithmetic). At 2^14 a sum of ones stands still.
[[nodiscard]] Accumulation hopper_fp8();

}  // namespace attest
