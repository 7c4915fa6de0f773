#include "core/records/hardware_counters.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/near_names.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

/// Share of the time of resident warps that they wait for this.
HardwareCounter stall(const std::string& reason, const std::string& name) {
  return {.name = "stall_" + name,
          .unit = "%",
          .metric = fmt::format("smsp__warp_issue_stalled_{}_per_warp_active.pct", reason),
          .group = "stalls"};
}

/// Shares are of the cycles in which SMs had a warp, on average or on the SM that had one for the
/// longest. Cycles that merely passed would count the time between the launches of a run.
std::vector<HardwareCounter> make_table() {
  return {
      {"dram_read_bytes", "B", "dram__bytes_read.sum", "", "", "dram"},
      {"dram_write_bytes", "B", "dram__bytes_write.sum", "", "", "dram"},
      // Of what SMs ask for, copies by TMA included; not of what the L2's halves ask each other.
      // Each takes a pass, and runs differ: hits over sectors would exceed 100 % now and then.
      {"l2_sectors", "1", "lts__t_sectors_srcunit_tex.sum", "", "", "l2"},
      {"l2_hit_rate", "%", "lts__t_sectors_srcunit_tex_lookup_hit.sum", "",
       "lts__t_sectors_srcunit_tex_lookup_miss.sum", "l2"},
      // Of a quarter of an SM, which has one pipe. Without HFMA2.MMA, by which nvcc also moves
      // constants.
      {"tensor_active", "%",
       "smsp__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active.avg",
       "sm__cycles_active.max", "", "tensor"},
      {"wgmma_instructions", "1", "sm__inst_executed_pipe_tensor_op_gmma.sum", "", "", "tensor"},
      {"shared_passes", "1", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "", "", "shared"},
      {"shared_conflict_passes", "1", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "", "",
       "shared"},
      {"achieved_occupancy", "%", "sm__warps_active.avg.pct_of_peak_sustained_active", "", "",
       "occupancy"},
      {"sm_balance", "%", "sm__cycles_active.avg", "sm__cycles_active.max", "", "occupancy"},
      stall("selected", "none"),  // it issues
      stall("not_selected", "not_selected"),
      stall("wait", "fixed_latency"),
      stall("math_pipe_throttle", "math_pipe"),
      stall("long_scoreboard", "global_memory"),
      stall("short_scoreboard", "shared_memory"),
      stall("mio_throttle", "shared_queue"),
      stall("lg_throttle", "global_queue"),
      stall("barrier", "barrier"),
      stall("gmma", "wgmma"),
      stall("sleeping", "sleep"),
      stall("no_instruction", "instruction_fetch"),
  };
}

}  // namespace

std::span<const HardwareCounter> all_hardware_counters() {
  static const std::vector<HardwareCounter> table = make_table();
  return table;
}

std::vector<std::string> hardware_counter_names() {
  std::vector<std::string> names;
  for (const HardwareCounter& counter : all_hardware_counters()) {
    if (names.empty() || names.back() != counter.group) names.push_back(counter.group);
  }
  for (const HardwareCounter& counter : all_hardware_counters()) names.push_back(counter.name);
  return names;
}

std::vector<HardwareCounter> hardware_counters_of(std::span<const std::string> names) {
  std::vector<HardwareCounter> chosen;
  const auto choose = [&](const HardwareCounter& counter) {
    if (std::ranges::find(chosen, counter.name, &HardwareCounter::name) == chosen.end()) {
      chosen.push_back(counter);
    }
  };
  for (const std::string& name : names) {
    bool is_known = false;
    for (const HardwareCounter& counter : all_hardware_counters()) {
      if (counter.group != name && counter.name != name) continue;
      choose(counter);
      is_known = true;
    }
    if (is_known) continue;
    if (name.find("__") == std::string::npos) {
      throw InvalidInput(fmt::format(
          "counter '{}' is unknown; {}; or a metric of CUPTI such as dram__bytes_read.sum",
          printable(name), near_or_all(name, hardware_counter_names())));
    }
    choose({.name = name, .metric = name});
  }
  return chosen;
}

double value_of(const HardwareCounter& counter, double metric, double per, double rest) {
  if (counter.per.empty() && counter.rest.empty()) return metric;
  return metric / (counter.rest.empty() ? per : metric + rest) * (counter.unit == "%" ? 100 : 1);
}

}  // namespace attest
