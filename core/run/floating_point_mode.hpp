#pragma once

#include <cfenv>
#include <cstdint>
#include <string>

namespace attest {

/// Floating-point mode of the calling thread: rounding, flushing of denormals and masked
/// exceptions, in the control words of SSE (MXCSR) and of the x87. They are callee-saved by the
/// ABI: a function that changes them and returns changes the results of its caller. Taken when the
/// object is made, restored when it goes; flags that exceptions raise do not belong to it.
class FloatingPointMode {
 public:
  FloatingPointMode() noexcept;
  FloatingPointMode(const FloatingPointMode&) = delete;
  FloatingPointMode& operator=(const FloatingPointMode&) = delete;
  ~FloatingPointMode();

  /// Changes since the object was made, such as "denormal results are flushed to zero (MXCSR
  /// 0x9f80, was 0x1f80)"; empty: none.
  [[nodiscard]] std::string changes() const;

 private:
  std::fenv_t before_{};
};

/// The control words themselves, to be told to another process.
struct FloatingPointControl {
  std::uint32_t mxcsr = 0;
  std::uint16_t x87 = 0;
};
[[nodiscard]] FloatingPointControl floating_point_control() noexcept;
/// The calling thread now rounds and flushes denormals as a thread elsewhere did. Exceptions stay
/// masked as they are: false if it masked others.
[[nodiscard]] bool take_over(const FloatingPointControl& control) noexcept;

}  // namespace attest
