#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "gpu/runtime/cuda_device.hpp"
#include "gpu/runtime/device_buffer.hpp"
#include "gpu/runtime/device_info.hpp"

// Skips the rest of a test where there is no GPU; CTest then reports `Skipped`, never `Passed`.
inline void skip_without_gpu() {
  if (const std::string reason = attest::why_no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
}

/// Base of tests that need a GPU. Their suites are named Gpu*: `ctest -R '\.Gpu'` runs them alone.
class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override { skip_without_gpu(); }
};

/// Base of tests of instructions that only sm_90a has; skipped, with the reason, on other GPUs.
class OnHopper : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    device_.emplace();
    if (device_->info().compute_major != 9 || device_->info().compute_minor != 0) {
      GTEST_SKIP() << "needs a GPU of sm_90; this is " << device_->description();
    }
  }
  [[nodiscard]] attest::CudaDevice& device() { return *device_; }

 private:
  std::optional<attest::CudaDevice> device_;
};

/// Values on the GPU.
template <typename T>
attest::DeviceBuffer<T> on_device(const std::vector<T>& values) {
  attest::DeviceBuffer<T> buffer{values.size()};
  buffer.copy_from(values);
  return buffer;
}

/// Values of a buffer after all work of `device`.
template <typename T>
std::vector<T> read_back(const attest::DeviceBuffer<T>& buffer, attest::CudaDevice& device) {
  device.synchronize();
  std::vector<T> values(buffer.size());
  buffer.copy_to(values);
  return values;
}

template <typename T>
std::byte* bytes_of(const attest::DeviceBuffer<T>& buffer) {
  return reinterpret_cast<std::byte*>(buffer.data());
}
