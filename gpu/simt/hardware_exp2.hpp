#pragma once

namespace attest::simt {

/// ex2.approx.ftz.f32 as an H200 gives it.
float hardware_exp2(float x) noexcept;

}  // namespace attest::simt
