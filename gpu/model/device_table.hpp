#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/attention/element_type.hpp"

namespace attest {

/// Facts about a GPU that models need. Nothing here is measured on the machine at hand.
struct GpuModel {
  std::string_view name;         ///< on the command line: `h200`
  std::string_view title;        ///< `H200 SXM`
  std::string_view driver_name;  ///< `NVIDIA H200`: what tables of tuned Plans call it
  int compute_capability;        ///< 90 stands for 9.0

  // Limits of a streaming multiprocessor (SM) [CUDA C++ Programming Guide, compute capabilities].
  std::int64_t sms;
  std::int64_t warps_per_sm;
  std::int64_t blocks_per_sm;
  std::int64_t registers_per_sm;
  std::int64_t shared_per_sm_bytes;
  std::int64_t shared_per_block_bytes;      ///< on request; without it 48 KiB
  std::int64_t shared_reserved_bytes;       ///< of every block, taken by the driver
  std::int64_t shared_granularity_bytes;    ///< a block gets a multiple of it
  std::int64_t register_granularity = 256;  ///< a warp gets a multiple of it [cuda_occupancy.h]
  std::int64_t sub_partitions = 4;          ///< of an SM: warps are spread over them

  // Caches and memory.
  std::int64_t l2_bytes;
  int l2_partitions;  ///< each next to a half of the SMs; what both halves read may be kept twice
  int l2_ways = 16;   ///< assumed: no vendor publishes it
  std::int64_t l2_line_bytes = 128;
  std::int64_t l2_sector_bytes = 32;
  double l2_bytes_per_s;    ///< assumed, in proportion to SMs and clocks: no vendor publishes it
  double dram_bytes_per_s;  ///< data sheet
  double dram_bytes;

  // Rates.
  double boost_hz;
  double fp32_flops;             ///< CUDA cores, per second
  double tf32_flops;             ///< tensor cores, dense; 0: none
  double fp16_flops;             ///< tensor cores, dense, fp32 accumulation; bf16 too from sm_80 on
  double fp8_flops = 0;          ///< tensor cores, dense; 0: none
  double ex2_per_clock_sm = 16;  ///< MUFU.EX2 results
  double shared_bytes_per_clock_sm = 128;

  std::string_view link;  ///< to the GPUs of its host, in gpu/model/link_table

  std::string_view source;  ///< where the numbers are from

  /// Peak of the units that multiply elements of this type without changing their precision: fp32
  /// on CUDA cores, the 16-bit formats and those of fp8 on tensor cores.
  [[nodiscard]] constexpr double peak_flops(ElementType type) const {
    switch (type) {
      case ElementType::fp32:
        return fp32_flops;
      case ElementType::e4m3:
      case ElementType::e5m2:
        return fp8_flops;
      case ElementType::fp16:
      default:
        break;
    }
    return fp16_flops;
  }
  [[nodiscard]] constexpr double ex2_per_s() const {
    return static_cast<double>(sms) * ex2_per_clock_sm * boost_hz;
  }
};

[[nodiscard]] std::span<const GpuModel> all_gpu_models();
/// Model of a GPU's name. Throws InvalidInput for an unknown name.
[[nodiscard]] const GpuModel& gpu_model_from_name(std::string_view name);

}  // namespace attest
