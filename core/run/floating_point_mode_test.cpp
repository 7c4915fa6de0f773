#include "core/run/floating_point_mode.hpp"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <cfenv>
#include <limits>

namespace attest {
namespace {

constexpr unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x40;

TEST(FloatingPointMode, EveryChangeIsNamedAndUndone) {
  const unsigned before = _mm_getcsr();
  const auto changes_by = [](const auto& change) {
    const FloatingPointMode mode;
    change();
    return mode.changes();
  };
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(changes_by([] {}), "");
  EXPECT_TRUE(has(changes_by([] { (void)std::fesetround(FE_UPWARD); }), "rounding is upward"));
  EXPECT_TRUE(has(changes_by([] { _mm_setcsr(_mm_getcsr() | flush_to_zero); }),
                  "denormal results are flushed to zero"));
  EXPECT_TRUE(has(changes_by([] { _mm_setcsr(_mm_getcsr() | denormals_are_zero); }),
                  "denormal operands are taken as zero"));
  EXPECT_TRUE(has(changes_by([] { (void)feenableexcept(FE_INVALID); }), "exceptions"));
  EXPECT_TRUE(has(changes_by([] {
                    const unsigned short word = 0x27f;  // 53 bits
                    asm volatile("fldcw %0" : : "m"(word));
                  }),
                  "x87"));
  EXPECT_EQ(_mm_getcsr() & ~0x3fU, before & ~0x3fU);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST(FloatingPointMode, OfAnotherThreadIsTakenOverButForItsExceptions) {
  FloatingPointControl there;
  {
    const FloatingPointMode mode;
    (void)std::fesetround(FE_UPWARD);
    there = floating_point_control();
  }
  const FloatingPointMode mode;
  EXPECT_EQ(mode.changes(), "");
  EXPECT_TRUE(take_over(there));
  EXPECT_NE(mode.changes().find("rounding is upward"), std::string::npos) << mode.changes();
  there.mxcsr &= ~(1U << 9);  // a division by zero is no longer masked
  EXPECT_FALSE(take_over(there));
  EXPECT_EQ(mode.changes().find("masked"), std::string::npos) << mode.changes();
}

TEST(FloatingPointMode, RaisedFlagsAreNoChangeAndStayRaised) {
  std::feclearexcept(FE_ALL_EXCEPT);
  {
    const FloatingPointMode mode;
    volatile float largest = std::numeric_limits<float>::max();
    largest = largest * 2;
    EXPECT_EQ(mode.changes(), "");
  }
  EXPECT_NE(std::fetestexcept(FE_OVERFLOW), 0);
}

}  // namespace
}  // namespace attest
