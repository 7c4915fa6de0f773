#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/counted.hpp"
#include "core/base/text.hpp"
#include "experiments/explain/access_lines.hpp"
#include "experiments/explain/explanation.hpp"
#include "experiments/explain/quantities.hpp"

namespace attest {
namespace {

void print_head(std::string& to, const Explanation& e) {
  const GpuModel& gpu = *e.gpu;
  const ElementType type = e.problem.element_type;
  append(to, "kernel   {}: {}\n", e.kernel->name, e.kernel->summary);
  append(to, "problem  {}\n", to_string(e.problem));
  append(to, "plan     {}{}\n", to_string(e.plan),
         e.plan_origin.empty() ? "" : fmt::format(" ({})", e.plan_origin));
  if (e.paging.is_used()) append(to, "layouts  K and V in {}\n", to_string(e.paging));
  append(
      to,
      "device   {}: {} SMs, {} TFLOP/s in {}, memory {:.4g} GB/s, L2 {}, ridge {:.3g} FLOP/byte\n"
      "         ({})\n",
      gpu.title, gpu.sms, gpu.peak_flops(type) / 1e12, format_of(type).name,
      gpu.dram_bytes_per_s / 1e9, bytes(static_cast<double>(gpu.l2_bytes)), ridge(gpu, type),
      gpu.source);
}

void print_work(std::string& to, const Explanation& e) {
  append(to, "\nwork\n");
  append(to, "  FLOP            {:.4g} of visible pairs; {:.4g} if nothing were masked\n",
         e.flops_visible, e.flops_full);
  if (e.tiling) {
    const std::int64_t all = query_tiles(e.problem, *e.tiling) * key_tiles(e.problem, *e.tiling);
    const std::int64_t heads = e.problem.batch * e.problem.query_heads;
    append(to, "                  {:.4g} by whole tiles: {} of {} tile pairs are visited\n",
           tiled_flops(e.problem, *e.tiling), visited_tile_pairs(e.problem, *e.tiling) * heads,
           all * heads);
  }
  append(to, "  exponentials    {:.4g}\n", e.exponentials);
  const NamedTensors tensors = tensors_of(e.problem);
  append(to, "  memory          {} {}; S and P would take {} more\n", tensors.names,
         bytes(tensors.bytes), bytes(2 * e.footprint.matrix));
}

void print_traffic_row(std::string& to, const Explanation& e, std::string_view name, double read,
                       double written) {
  const double intensity = e.flops_visible / (read + written);
  append(to, "  {:<14}  {:>10}  {:>10}  {:>10.4g}  {}\n", name, bytes(read), bytes(written),
         intensity, intensity < ridge(*e.gpu, e.problem.element_type) ? "memory" : "arithmetic");
}

void print_traffic(std::string& to, const Explanation& e) {
  append(to, "\n{:<16}  {:>10}  {:>10}  {:>10}  {}\n", "memory traffic", "read", "written",
         "FLOP/byte", "the roofline is limited by");
  print_traffic_row(to, e, "compulsory", e.compulsory_read, e.compulsory_written);
  if (e.l2) {
    const L2Counts& c = e.l2->counts;
    print_traffic_row(to, e, "L2 model", static_cast<double>(c.dram_read),
                      static_cast<double>(c.dram_written));
  }
  if (e.law) print_traffic_row(to, e, "without cache", e.law->read(), e.law->written());
  if (e.l2) {
    append(to, "  L2 model: {} of what SMs read hit, in lines of {}\n",
           percent(e.l2->counts.read_hit_rate()), bytes(static_cast<double>(e.l2->line_bytes)));
  }
  if (!e.why_no_traffic.empty()) append(to, "  not known: {}\n", e.why_no_traffic);
}

std::string extent(const Extent3& e) {
  return e.z != 1   ? fmt::format("{} x {} x {}", e.x, e.y, e.z)
         : e.y != 1 ? fmt::format("{} x {}", e.x, e.y)
                    : fmt::format("{}", e.x);
}

void print_launch(std::string& to, const ExplainedLaunch& launch) {
  const LaunchConfiguration& c = launch.configuration;
  const Occupancy& o = launch.occupancy;
  append(to, "  {}{}: grid {}, {} threads, {} B of shared memory\n", c.kernel,
         launch.launches == 1 ? "" : fmt::format(" ({} launches)", launch.launches), extent(c.grid),
         extent(c.block), launch.shared_bytes());
  if (launch.compiled) {
    append(to, "    registers     {} a thread, stack {} B (compiled for sm_{})\n",
           launch.compiled->registers, launch.compiled->stack_bytes,
           launch.compiled->compute_capability);
  } else {
    append(to, "    registers     not known: this program holds no machine code of the kernel\n");
  }
  std::vector<std::string_view> limiters;
  for (const Limiter limiter : o.limiters) limiters.push_back(name_of(limiter));
  append(to, "    occupancy     {} an SM, {} of its warps, limited by {}\n",
         counted(o.blocks, "block"), percent(o.share), fmt::join(limiters, " and "));
  append(to, "    at a time     {} of {}{}{}\n", o.resident_blocks,
         counted(c.grid.count(), "block"),
         o.idle_sms == 0 ? "" : fmt::format("; {} SMs stay idle", o.idle_sms),
         o.share_of_grid == o.share
             ? ""
             : fmt::format("; the grid fills {} of an SM's warps", percent(o.share_of_grid)));
}

void print_lines(std::string& to, const KernelTrace& trace) {
  constexpr std::size_t most_lines = 24;
  std::vector<AccessLine> lines = access_lines(trace);
  const std::size_t left_out = lines.size() - std::min(most_lines, lines.size());
  lines.resize(lines.size() - left_out);
  std::size_t width = 0;
  for (const AccessLine& l : lines) width = std::max(width, l.line.size());
  const auto row = [&](std::string_view line, std::string_view access, std::string_view memory,
                       std::string_view requests, std::string_view size, std::string_view conflict,
                       std::string_view coalesced) {
    append(to, "  {:<{}}  {:<10}  {:<18}  {:>9}  {:>9}  {:>8}  {:>9}\n", line, width, access,
           memory, requests, size, conflict, coalesced);
  };
  row("line", "access", "memory", "requests", "bytes", "conflict", "coalesced");
  for (const AccessLine& l : lines) {
    const bool is_shared = l.space == MemorySpace::shared;
    row(l.line, fmt::format("{} {} B", name_of(l.kind), l.access_bytes), l.memory,
        fmt::format("{:.4g}", static_cast<double>(l.counts.requests)),
        bytes(static_cast<double>(l.counts.bytes)),
        is_shared ? fmt::format("{:.3g}-way", l.counts.ways()) : "",
        is_shared ? "" : fmt::format("{:.0f} %", 100 * l.counts.coalescing_efficiency()));
  }
  if (left_out > 0) append(to, "  and {} more lines\n", left_out);
}

void print_counters(std::string& to, const Explanation& e) {
  for (const KernelTrace& trace : e.counters->kernels) {
    append(to, "\ncounters of {}: {:.4g} fmaf ({:.3g} a shared load), {:.4g} barriers\n",
           trace.configuration.kernel, static_cast<double>(trace.fmas),
           trace.fmas_per_shared_load(), static_cast<double>(trace.barriers));
    print_lines(to, trace);
  }
  append(to, "  {}{}\n", e.counters->is_exact ? "" : "estimated: ", e.counters->basis);
}

void print_floors(std::string& to, const Explanation& e) {
  const TimeFloors& f = e.floors;
  const double largest = f.largest();
  const auto row = [&](std::string_view name, double seconds, const std::string& note = "") {
    if (seconds == 0) return;
    append(to, "  {:<14}  {:>12}{}{}\n", name, milliseconds(seconds), note,
           seconds == largest ? "  <- the largest" : "");
  };
  append(to, "\ntime at best\n");
  row("arithmetic", f.flops);
  row("memory", f.dram);
  row("L2", f.l2);
  row("exponentials", f.exponentials);
  row("shared memory", f.shared,
      f.shared == e.shared_as_written_s
          ? ""
          : fmt::format(" if nvcc merges all accesses into 16 bytes, {} if none",
                        milliseconds(e.shared_as_written_s)));
}

}  // namespace

std::string explanation_text(const Explanation& e) {
  std::string to;
  print_head(to, e);
  print_work(to, e);
  print_traffic(to, e);
  if (!e.launches.empty()) append(to, "\nlaunches\n");
  for (const ExplainedLaunch& launch : e.launches) print_launch(to, launch);
  if (e.counters) {
    print_counters(to, e);
  } else {
    append(to, "\ncounters: not known: {}\n", e.why_no_counters);
  }
  print_floors(to, e);
  if (e.ranks) to += rank_scaling_text(*e.ranks);
  return to;
}

}  // namespace attest
