#include "core/attention/codes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "gpu/primitives/test_kernels.hpp"
#include "gpu/runtime/test_device.hpp"

namespace attest {
namespace {

using GpuCodes = OnHopper;

/// NaN codes of e4m3 as bf16 are 480, as codes.cuh says.
float wanted(ElementType type, Code code, unsigned bits) {
  const float value = decode(format_with(code, ElementType::fp32), bits);
  if (type == ElementType::fp16 || !std::isnan(value)) return value;
  return bits > 127 ? -480.0F : 480.0F;
}

TEST_F(GpuCodes, AllOf256AreTheirNumbersInBothOrders) {
  for (const ElementType type : {ElementType::fp16, ElementType::bf16}) {
    for (const Code code : {Code::e4m3, Code::int8}) {
      DeviceBuffer<unsigned> out{256};
      launch_convert_codes(type, code, out.data(), device());
      const std::vector<unsigned> got = read_back(out, device());
      for (unsigned bits = 0; bits < 256; ++bits) {
        const unsigned four = bits / 4, within = bits % 4;
        const unsigned in_order = got[4 * four + within / 2] >> 16 * (within % 2) & 0xffffU;
        const unsigned alternating = got[4 * four + 2 + within % 2] >> 16 * (within / 2) & 0xffffU;
        const float want = wanted(type, code, bits);
        EXPECT_EQ(in_order, alternating) << name_of(code) << ' ' << bits;
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(decode(type, in_order))) << name_of(code) << ' ' << bits;
        } else {
          EXPECT_EQ(in_order, encode(type, want)) << name_of(code) << ' ' << bits;
        }
      }
    }
  }
}

}  // namespace
}  // namespace attest
