#include "gpu/model/occupancy.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace attest {
namespace {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::int64_t blocks_by_registers(const GpuModel& gpu, const BlockNeeds& needs, std::int64_t warps) {
  if (!needs.registers_per_thread) return unlimited;
  const std::int64_t of_warp = round_up(*needs.registers_per_thread * 32, gpu.register_granularity);
  if (of_warp == 0) return unlimited;
  // A launch is refused unless a block fits with its warps spread evenly over the sub-partitions.
  if (of_warp * round_up(warps, gpu.sub_partitions) > gpu.registers_per_sm) return 0;
  const std::int64_t of_sub_partition = gpu.registers_per_sm / gpu.sub_partitions / of_warp;
  return of_sub_partition * gpu.sub_partitions / warps;
}

}  // namespace

std::string_view name_of(Limiter limiter) {
  switch (limiter) {
    case Limiter::warps:
      return "warps";
    case Limiter::blocks:
      return "blocks";
    case Limiter::registers:
      return "registers";
    case Limiter::shared_memory:
      return "shared memory";
  }
  return "";
}

Occupancy occupancy_of(const GpuModel& gpu, const BlockNeeds& needs, std::int64_t grid_blocks) {
  const std::int64_t warps = std::max<std::int64_t>(1, (needs.threads + 31) / 32);
  const std::int64_t shared =
      round_up(needs.shared_bytes + gpu.shared_reserved_bytes, gpu.shared_granularity_bytes);
  Occupancy o{.by_warps = gpu.warps_per_sm / warps,
              .by_blocks = gpu.blocks_per_sm,
              .by_registers = blocks_by_registers(gpu, needs, warps),
              .by_shared = needs.shared_bytes > gpu.shared_per_block_bytes ? 0
                           : shared == 0                                   ? unlimited
                                         : gpu.shared_per_sm_bytes / shared};
  o.blocks = std::min({o.by_warps, o.by_blocks, o.by_registers, o.by_shared});
  for (const auto& [limiter, blocks] :
       {std::pair(Limiter::warps, o.by_warps), std::pair(Limiter::blocks, o.by_blocks),
        std::pair(Limiter::registers, o.by_registers),
        std::pair(Limiter::shared_memory, o.by_shared)}) {
    if (blocks == o.blocks) o.limiters.push_back(limiter);
  }
  o.share = static_cast<double>(o.blocks * warps) / static_cast<double>(gpu.warps_per_sm);
  o.resident_blocks = std::min(o.blocks * gpu.sms, grid_blocks);
  // Of the SM that has most.
  const std::int64_t of_grid = grid_blocks / gpu.sms + (grid_blocks % gpu.sms > 0 ? 1 : 0);
  o.share_of_grid = static_cast<double>(std::min(o.blocks, of_grid) * warps) /
                    static_cast<double>(gpu.warps_per_sm);
  o.idle_sms = std::max<std::int64_t>(0, gpu.sms - grid_blocks);
  return o;
}

std::int64_t blocks_at_once(const GpuModel& gpu, const BlockNeeds& needs) {
  return std::max<std::int64_t>(1, occupancy_of(gpu, needs, unlimited).resident_blocks);
}

}  // namespace attest
