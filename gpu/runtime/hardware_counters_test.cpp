#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "gpu/runtime/cuda_device.hpp"
#include "gpu/runtime/scrub.hpp"
#include "gpu/runtime/test_device.hpp"

namespace attest {
namespace {

using Names = std::vector<std::string>;

/// Skipped, with the sentence, where the machine has no counters for us.
class GpuHardwareCounters : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    device_.emplace();
    try {
      (void)device_->count(Names{"dram"}, [] {});
    } catch (const MachineError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  double counted(const std::string& name, const std::function<void()>& work) {
    const std::vector<Measurement> values = device_->count(Names{name}, work);
    EXPECT_EQ(values.size(), 1U);
    return values.at(0).value;
  }
  void read(const DeviceBuffer<std::byte>& buffer) {
    ATTEST_CUDA_CHECK(launch_read(buffer.data(), buffer.size(), device_->info().multiprocessors,
                                  device_->stream().get()));
  }

  std::optional<CudaDevice> device_;
};

TEST_F(GpuHardwareCounters,
       every_byte_of_a_buffer_that_is_read_once_comes_from_memory_and_no_other) {
  const std::size_t bytes = std::size_t{1} << 30;
  const DeviceBuffer<std::byte> buffer(bytes);
  const double read_bytes = counted("dram_read_bytes", [&] { read(buffer); });
  EXPECT_GE(read_bytes, static_cast<double>(bytes));
  // Page tables, the kernel's code, refreshes of neighbours: no more than an L2 holds.
  EXPECT_LE(read_bytes, static_cast<double>(bytes) + static_cast<double>(device_->info().l2_bytes));
}

TEST_F(GpuHardwareCounters, what_was_in_the_cache_before_the_work_does_not_help_it) {
  const DeviceBuffer<std::byte> buffer(std::size_t{1} << 20);
  read(buffer);
  EXPECT_GE(counted("dram_read_bytes", [&] { read(buffer); }), static_cast<double>(buffer.size()));
  // A second look at it within the work hits.
  EXPECT_LT(counted("l2_hit_rate", [&] { read(buffer); }), 50);
  EXPECT_GE(counted("l2_hit_rate",
                    [&] {
                      read(buffer);
                      read(buffer);
                      read(buffer);
                    }),
            50);
}

TEST_F(GpuHardwareCounters, sectors_are_those_that_the_kernel_asks_for) {
  const DeviceBuffer<std::byte> buffer(std::size_t{1} << 24);
  EXPECT_EQ(counted("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", [&] { read(buffer); }),
            static_cast<double>(buffer.size() / 32));
}

TEST_F(GpuHardwareCounters, all_groups_in_one_request_run_the_work_once_a_pass_and_give_numbers) {
  const DeviceBuffer<std::byte> buffer(std::size_t{1} << 24);
  int runs = 0;
  const std::vector<Measurement> values =
      device_->count(Names{"dram", "l2", "tensor", "shared", "occupancy", "stalls"}, [&] {
        read(buffer);
        ++runs;
      });
  EXPECT_GT(runs, 1);
  for (const Measurement& m : values) {
    EXPECT_TRUE(std::isfinite(m.value)) << m.name;
    EXPECT_GE(m.value, 0) << m.name;
    if (m.unit == "%") {
      EXPECT_LE(m.value, 100) << m.name;
    }
  }
}

TEST_F(GpuHardwareCounters, a_kernel_without_matrix_products_keeps_no_tensor_pipe_busy) {
  const DeviceBuffer<std::byte> buffer(std::size_t{1} << 24);
  EXPECT_EQ(counted("tensor_active", [&] { read(buffer); }), 0);
}

TEST_F(GpuHardwareCounters, unknown_names_are_bad_input) {
  EXPECT_THROW((void)device_->count(Names{"drm"}, [] {}), InvalidInput);
  EXPECT_THROW((void)device_->count(Names{"dram__bytes_raed.sum"}, [] {}), InvalidInput);
}

TEST_F(GpuHardwareCounters, work_that_throws_leaves_the_counters_usable) {
  EXPECT_THROW((void)device_->count(Names{"dram"}, [] { throw KernelError("no"); }), KernelError);
  EXPECT_EQ(device_->count(Names{"dram"}, [] {}).size(), 2U);
}

}  // namespace
}  // namespace attest
