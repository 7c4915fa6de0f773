#pragma once

#include <cstdint>

#include "gpu/microbench/exp2_cubic.cuh"

namespace attest::microbench {

// Single instructions as steps of a chain: x is the chain, y another chain's value, so that nothing
// folds; a and b never change. What nvcc makes of each is in README.md.
#define ATTEST_OP(NAME, TEXT)                                                                      \
  struct NAME {                                                                                    \
    static __device__ void apply(std::uint32_t& x, std::uint32_t y, std::uint32_t a,               \
                                 std::uint32_t b) {                                                \
      asm volatile("{.reg .b16 h, g; .reg .pred p; " TEXT "}" : "+r"(x) : "r"(y), "r"(a), "r"(b)); \
    }                                                                                              \
  };
ATTEST_OP(Ffma, "fma.rn.f32 %0, %0, %2, %3;")
ATTEST_OP(FfmaMoving, "fma.rn.f32 %0, %0, %2, %1;")
ATTEST_OP(FfmaImmediate, "fma.rn.f32 %0, %0, 0f3f000000, %1;")
ATTEST_OP(Fadd, "add.rn.f32 %0, %0, %2;")
ATTEST_OP(FaddMoving, "add.rn.f32 %0, %0, %1;")
ATTEST_OP(FaddRm, "add.rm.f32 %0, %0, %2;")
ATTEST_OP(Fmul, "mul.rn.f32 %0, %0, %2;")
ATTEST_OP(FmulImmediate, "mul.rn.f32 %0, %0, 0f3f400000;")
ATTEST_OP(Fmnmx, "max.f32 %0, %0, %1;")
ATTEST_OP(Ex2F32, "ex2.approx.ftz.f32 %0, %0;")
ATTEST_OP(Ex2F16x2, "ex2.approx.f16x2 %0, %0;")
ATTEST_OP(Ex2Bf16x2, "ex2.approx.ftz.bf16x2 %0, %0;")
ATTEST_OP(Ex2F16, "mov.b32 {h, g}, %0; ex2.approx.f16 h, h; mov.b32 %0, {h, g};")
ATTEST_OP(TanhF16x2, "tanh.approx.f16x2 %0, %0;")
ATTEST_OP(Rsqrt, "rsqrt.approx.ftz.f32 %0, %0;")
ATTEST_OP(CvtBf16x2, "cvt.rn.bf16x2.f32 %0, %0, %1;")
ATTEST_OP(CvtF16x2, "cvt.rn.f16x2.f32 %0, %0, %1;")
ATTEST_OP(WidenF16, "mov.b32 {h, g}, %0; cvt.f32.f16 %0, h;")
ATTEST_OP(FloatToInt, "cvt.rni.s32.f32 %0, %0;")
ATTEST_OP(RoundFloat, "cvt.rni.f32.f32 %0, %0;")
ATTEST_OP(Hfma2Bf16, "fma.rn.bf16x2 %0, %0, %2, %3;")
ATTEST_OP(Hfma2F16, "fma.rn.f16x2 %0, %0, %2, %3;")
ATTEST_OP(Hmnmx2Bf16, "max.bf16x2 %0, %0, %1;")
ATTEST_OP(Hmnmx2F16, "max.f16x2 %0, %0, %1;")
ATTEST_OP(ShiftAdd, "{.reg .b32 t; shl.b32 t, %1, 23; add.s32 %0, %0, t;}")
ATTEST_OP(Iadd3, "{.reg .b32 t; add.s32 t, %1, %2; add.s32 %0, %0, t;}")
ATTEST_OP(Imad, "mad.lo.s32 %0, %0, %2, %1;")
ATTEST_OP(Lop3, "lop3.b32 %0, %0, %1, %2, 0x96;")
ATTEST_OP(Prmt, "prmt.b32 %0, %0, %1, 0x5410;")
ATTEST_OP(Imnmx, "max.s32 %0, %0, %1;")
ATTEST_OP(Shfl, "shfl.sync.bfly.b32 %0, %0, 1, 31, -1;")
ATTEST_OP(Select, "setp.ne.u32 p, %2, 0; selp.b32 %0, %0, %1, p;")
ATTEST_OP(CompareSelect, "setp.lt.s32 p, %0, %2; selp.b32 %0, %0, %1, p;")
#undef ATTEST_OP
struct Exp2Cubic {
  static __device__ void apply(std::uint32_t& x, std::uint32_t, std::uint32_t, std::uint32_t) {
    x = __float_as_uint(exp2_cubic(-__uint_as_float(x)));
  }
};

}  // namespace attest::microbench
