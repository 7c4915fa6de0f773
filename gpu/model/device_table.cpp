#include "gpu/model/device_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;

constexpr GpuModel h200{.name = "h200",
                        .title = "H200 SXM",
                        .driver_name = "NVIDIA H200",
                        .compute_capability = 90,
                        .sms = 132,
                        .warps_per_sm = 64,
                        .blocks_per_sm = 32,
                        .registers_per_sm = 65536,
                        .shared_per_sm_bytes = 228 * kib,
                        .shared_per_block_bytes = 227 * kib,
                        .shared_reserved_bytes = kib,
                        .shared_granularity_bytes = 128,
                        .l2_bytes = 60 * mib,
                        .l2_partitions = 2,
                        .l2_bytes_per_s = 10.1e12,  // 5,120 bytes a clock
                        .dram_bytes_per_s = 4.8e12,
                        .dram_bytes = 141e9,
                        .boost_hz = 1.98e9,
                        .fp32_flops = 66.9e12,
                        .tf32_flops = 494.7e12,
                        .fp16_flops = 989.5e12,
                        .fp8_flops = 1979e12,
                        .link = "nvlink4",
                        .source = "H200 data sheet; L2 size by device query; L2 bandwidth assumed"};

constexpr GpuModel h100 = [] {
  GpuModel gpu = h200;
  gpu.name = "h100";
  gpu.title = "H100 SXM, 80 GB";
  gpu.driver_name = "NVIDIA H100 80GB HBM3";
  gpu.l2_bytes = 50 * mib;
  gpu.dram_bytes_per_s = 3.35e12;
  gpu.dram_bytes = 80e9;
  gpu.source = "H100 data sheet; L2 size by device query; L2 bandwidth assumed";
  return gpu;
}();

constexpr GpuModel a100{.name = "a100",
                        .title = "A100 SXM, 80 GB",
                        .driver_name = "NVIDIA A100-SXM4-80GB",
                        .compute_capability = 80,
                        .sms = 108,
                        .warps_per_sm = 64,
                        .blocks_per_sm = 32,
                        .registers_per_sm = 65536,
                        .shared_per_sm_bytes = 164 * kib,
                        .shared_per_block_bytes = 163 * kib,
                        .shared_reserved_bytes = kib,
                        .shared_granularity_bytes = 128,
                        .l2_bytes = 40 * mib,
                        .l2_partitions = 2,
                        .l2_bytes_per_s = 7.2e12,  // 5,120 bytes a clock
                        .dram_bytes_per_s = 2.039e12,
                        .dram_bytes = 80e9,
                        .boost_hz = 1.41e9,
                        .fp32_flops = 19.5e12,
                        .tf32_flops = 156e12,
                        .fp16_flops = 312e12,
                        .link = "nvlink3",
                        .source = "A100 data sheet and white paper; L2 bandwidth assumed"};

constexpr GpuModel a6000{.name = "a6000",
                         .title = "RTX A6000",
                         .driver_name = "NVIDIA RTX A6000",
                         .compute_capability = 86,
                         .sms = 84,
                         .warps_per_sm = 48,
                         .blocks_per_sm = 16,
                         .registers_per_sm = 65536,
                         .shared_per_sm_bytes = 100 * kib,
                         .shared_per_block_bytes = 99 * kib,
                         .shared_reserved_bytes = kib,
                         .shared_granularity_bytes = 128,
                         .l2_bytes = 6 * mib,
                         .l2_partitions = 1,
                         .l2_bytes_per_s = 2.8e12,  // 1,536 bytes a clock
                         .dram_bytes_per_s = 768e9,
                         .dram_bytes = 48e9,
                         .boost_hz = 1.8e9,
                         .fp32_flops = 38.7e12,
                         .tf32_flops = 77.4e12,
                         .fp16_flops = 154.8e12,
                         .link = "pcie4",
                         .source = "GA102 white paper; tensor peaks and L2 bandwidth assumed"};

constexpr GpuModel t4{.name = "t4",
                      .title = "T4",
                      .driver_name = "Tesla T4",
                      .compute_capability = 75,
                      .sms = 40,
                      .warps_per_sm = 32,
                      .blocks_per_sm = 16,
                      .registers_per_sm = 65536,
                      .shared_per_sm_bytes = 64 * kib,
                      .shared_per_block_bytes = 64 * kib,
                      .shared_reserved_bytes = 0,
                      .shared_granularity_bytes = 256,
                      .l2_bytes = 4 * mib,
                      .l2_partitions = 1,
                      .l2_bytes_per_s = 1.27e12,
                      .dram_bytes_per_s = 320e9,
                      .dram_bytes = 16e9,
                      .boost_hz = 1.59e9,
                      .fp32_flops = 8.1e12,
                      .tf32_flops = 0,
                      .fp16_flops = 65e12,
                      .shared_bytes_per_clock_sm = 64,
                      .link = "pcie3",
                      .source = "T4 data sheet; L2 and shared-memory bandwidth assumed"};

constexpr std::array table{h200, h100, a100, a6000, t4};

}  // namespace

std::span<const GpuModel> all_gpu_models() {
  return table;
}

const GpuModel& gpu_model_from_name(std::string_view name) {
  const auto found = std::ranges::find(table, name, &GpuModel::name);
  if (found == table.end()) {
    std::string names;
    for (const GpuModel& gpu : table) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", gpu.name);
    }
    throw InvalidInput(fmt::format("device '{}' is unknown; allowed: {}", printable(name), names));
  }
  return *found;
}

}  // namespace attest
