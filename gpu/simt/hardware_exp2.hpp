#pragma once

namespace attest::simt {

/// 2^x where the device has ex2.approx.ftz.f32.
float hardware_exp2(float x) noexcept;

}  // namespace attest::simt
