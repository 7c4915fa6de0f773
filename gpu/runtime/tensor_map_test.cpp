#include "gpu/runtime/tensor_map.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.hpp"
#include "gpu/runtime/test_device.hpp"

// What a map does is tested with the copies that use it: gpu/primitives/tma_test.cpp.
namespace attest {
namespace {

class GpuTensorMap : public OnHopper {
 protected:
  void SetUp() override {
    OnHopper::SetUp();
    if (!IsSkipped()) memory_ = DeviceBuffer<char>{1 << 20U};
  }
  /// [2, 3, 70, 64] in bf16, to be spoilt.
  [[nodiscard]] BoxedTensor tensor() const {
    return {.first = memory_.data(),
            .batch = 2,
            .heads = 3,
            .rows = 70,
            .columns = 64,
            .strides = {.batch = 3 * 70 * 64, .head = 70 * 64, .row = 64}};
  }
  /// Complaint about a tensor that gets no map; empty when it gets one.
  [[nodiscard]] static std::string refusal(const BoxedTensor& tensor) {
    try {
      (void)tensor_map(tensor);
    } catch (const MachineError& error) {
      return error.what();
    }
    return "";
  }

  DeviceBuffer<char> memory_;
};

TEST_F(GpuTensorMap, ATensorWithAlignedAddressAndStridesGetsAMap) {
  EXPECT_EQ(refusal(tensor()), "");
}

TEST_F(GpuTensorMap, AnAddressOffA16ByteBoundaryIsRefusedInOneLineThatSaysWhatIsAllowed) {
  BoxedTensor t = tensor();
  t.first = memory_.data() + 8;
  const std::string said = refusal(t);
  EXPECT_NE(said.find("addresses and strides that are multiples of 16 bytes"), std::string::npos)
      << said;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
}

TEST_F(GpuTensorMap, AStrideThatIsNoMultipleOf16BytesIsRefusedInEachDimension) {
  for (std::int64_t Strides::*const stride : {&Strides::batch, &Strides::head, &Strides::row}) {
    BoxedTensor t = tensor();
    t.strides.*stride += 4;
    const std::string said = refusal(t);
    EXPECT_NE(said.find("2 x 3 x 70 x 64 elements"), std::string::npos) << said;
    EXPECT_NE(said.find("strides"), std::string::npos) << said;
  }
}

TEST_F(GpuTensorMap, AStrideOf2To40BytesIsRefused) {
  BoxedTensor t = tensor();
  t.strides.batch = std::int64_t{1} << 39U;
  EXPECT_NE(refusal(t), "");
  t.strides.batch -= 8;
  EXPECT_EQ(refusal(t), "");
}

TEST_F(GpuTensorMap, TheStrideOfADimensionOfOneElementMayBeAnything) {
  for (const std::int64_t stride : {-1L, 0L, 3L, 1L << 60U}) {
    BoxedTensor t = tensor();
    t.batch = 1;
    t.heads = 1;
    t.strides.batch = stride;
    t.strides.head = stride;
    EXPECT_EQ(refusal(t), "") << stride;
  }
}

TEST_F(GpuTensorMap, ABoxHasOneTo256Rows) {
  BoxedTensor t = tensor();
  for (const std::int64_t rows : {0, 257}) {
    t.box_rows = rows;
    EXPECT_NE(refusal(t), "") << rows;
  }
  for (const std::int64_t rows : {1, 256}) {
    t.box_rows = rows;
    EXPECT_EQ(refusal(t), "") << rows;
  }
}

}  // namespace
}  // namespace attest
