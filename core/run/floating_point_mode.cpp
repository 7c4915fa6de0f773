#include "core/run/floating_point_mode.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace attest {
namespace {

// MXCSR [Intel SDM volume 1, 10.2.3].
constexpr std::uint32_t sse_status = 0x3f;  // exceptions that happened: no control
constexpr std::uint32_t sse_denormals_are_zero = 1U << 6;
constexpr std::uint32_t sse_exception_masks = 0x1f80;
constexpr std::uint32_t sse_rounding_shift = 13;
constexpr std::uint32_t sse_flush_to_zero = 1U << 15;

std::uint32_t sse_rounding(std::uint32_t mxcsr) {
  return mxcsr >> sse_rounding_shift & 3;
}

}  // namespace

FloatingPointMode::FloatingPointMode() noexcept {
  (void)std::fegetenv(&before_);
}

FloatingPointMode::~FloatingPointMode() {
  std::fenv_t now;
  (void)std::fegetenv(&now);
  now.__mxcsr = (now.__mxcsr & sse_status) | (before_.__mxcsr & ~sse_status);
  now.__control_word = before_.__control_word;
  (void)std::fesetenv(&now);
}

std::string FloatingPointMode::changes() const {
  constexpr std::array<std::string_view, 4> roundings{"to nearest", "downward", "upward",
                                                      "towards zero"};
  std::fenv_t now;
  (void)std::fegetenv(&now);
  const std::uint32_t was = before_.__mxcsr & ~sse_status, is = now.__mxcsr & ~sse_status;
  std::vector<std::string> changes;
  if (sse_rounding(is) != sse_rounding(was)) {
    changes.push_back(fmt::format("rounding is {}", roundings[sse_rounding(is)]));
  }
  if (((is ^ was) & sse_flush_to_zero) != 0) {
    changes.push_back(fmt::format("denormal results are {}flushed to zero",
                                  (is & sse_flush_to_zero) != 0 ? "" : "not "));
  }
  if (((is ^ was) & sse_denormals_are_zero) != 0) {
    changes.push_back(fmt::format("denormal operands are {}taken as zero",
                                  (is & sse_denormals_are_zero) != 0 ? "" : "not "));
  }
  if (((is ^ was) & sse_exception_masks) != 0) {
    changes.emplace_back("other exceptions are masked");
  }
  if (!changes.empty()) changes.back() += fmt::format(" (MXCSR {:#06x}, was {:#06x})", is, was);
  if (now.__control_word != before_.__control_word) {
    changes.push_back(fmt::format("the control word of the x87 is {:#06x}, was {:#06x}",
                                  now.__control_word, before_.__control_word));
  }
  return fmt::format("{}", fmt::join(changes, ", "));
}

FloatingPointControl floating_point_control() noexcept {
  std::fenv_t now;
  (void)std::fegetenv(&now);
  return {.mxcsr = now.__mxcsr & ~sse_status, .x87 = now.__control_word};
}

bool take_over(const FloatingPointControl& control) noexcept {
  constexpr std::uint16_t x87_exception_masks = 0x3f;
  constexpr std::uint16_t x87_rounding_and_precision = 0x0f00;
  constexpr std::uint32_t sse_how =
      sse_denormals_are_zero | sse_flush_to_zero | 3U << sse_rounding_shift;
  std::fenv_t now;
  (void)std::fegetenv(&now);
  const bool masks_the_same = ((now.__mxcsr ^ control.mxcsr) & sse_exception_masks) == 0 &&
                              ((now.__control_word ^ control.x87) & x87_exception_masks) == 0;
  now.__mxcsr = (now.__mxcsr & ~sse_how) | (control.mxcsr & sse_how);
  now.__control_word =
      static_cast<std::uint16_t>((now.__control_word & ~x87_rounding_and_precision) |
                                 (control.x87 & x87_rounding_and_precision));
  (void)std::fesetenv(&now);
  return masks_the_same;
}

}  // namespace attest
