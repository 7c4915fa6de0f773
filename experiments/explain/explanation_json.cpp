#include <fmt/format.h>

#include <string>

#include "experiments/explain/access_lines.hpp"
#include "experiments/explain/explanation.hpp"

namespace attest {
namespace {

Json device_json(const GpuModel& gpu, ElementType type) {
  return {{"name", gpu.name},
          {"title", gpu.title},
          {"sms", gpu.sms},
          {"peak_flops", gpu.peak_flops(type)},
          {"dram_bytes_per_s", gpu.dram_bytes_per_s},
          {"l2_bytes", gpu.l2_bytes},
          {"ridge_flop_per_byte", ridge(gpu, type)},
          {"source", gpu.source}};
}

Json traffic_json(const Traffic& t, double flops) {
  return {{"read_bytes", t.read()},
          {"written_bytes", t.written()},
          {"q_read", t.q},
          {"k_read", t.k},
          {"v_read", t.v},
          {"o_read", t.o_read},
          {"o_written", t.o_written},
          {"s_written", t.s_written},
          {"s_read", t.s_read},
          {"p_written", t.p_written},
          {"p_read", t.p_read},
          {"statistics", t.statistics},
          {"lse_written", t.lse},
          {"flop_per_byte", flops / t.total()}};
}

Json l2_json(const L2Simulation& l2, double flops) {
  const L2Counts& c = l2.counts;
  return {{"read_bytes", c.dram_read},
          {"written_bytes", c.dram_written},
          {"requested_read_bytes", c.requested_read},
          {"requested_written_bytes", c.requested_written},
          {"read_hit_rate", c.read_hit_rate()},
          {"hit_rate", c.hit_rate()},
          {"line_bytes", l2.line_bytes},
          {"flop_per_byte", flops / static_cast<double>(c.dram_read + c.dram_written)}};
}

Json extent_json(const Extent3& e) {
  return Json::array({e.x, e.y, e.z});
}

Json launch_json(const ExplainedLaunch& launch) {
  const LaunchConfiguration& c = launch.configuration;
  const Occupancy& o = launch.occupancy;
  Json limiters = Json::array();
  for (const Limiter limiter : o.limiters) limiters.push_back(name_of(limiter));
  Json json{{"kernel", c.kernel},
            {"launches", launch.launches},
            {"grid", extent_json(c.grid)},
            {"block", extent_json(c.block)},
            {"dynamic_shared_bytes", c.dynamic_shared_bytes},
            {"registers", nullptr}};
  if (launch.compiled) {
    json["registers"] = launch.compiled->registers;
    json["stack_bytes"] = launch.compiled->stack_bytes;
    json["static_shared_bytes"] = launch.compiled->static_shared_bytes;
    json["compiled_for"] = fmt::format("sm_{}", launch.compiled->compute_capability);
  }
  json["blocks_per_sm"] = o.blocks;
  json["occupancy"] = o.share;
  json["occupancy_of_the_grid"] = o.share_of_grid;
  json["limited_by"] = std::move(limiters);
  json["resident_blocks"] = o.resident_blocks;
  json["idle_sms"] = o.idle_sms;
  return json;
}

Json line_json(const AccessLine& l) {
  Json json{{"line", l.line},
            {"space", l.space == MemorySpace::shared ? "shared" : "global"},
            {"access", name_of(l.kind)},
            {"access_bytes", l.access_bytes},
            {"memory", l.memory},
            {"requests", l.counts.requests},
            {"partial_requests", l.counts.partial_requests},
            {"bytes", l.counts.bytes}};
  if (l.space == MemorySpace::shared) {
    json["passes"] = l.counts.passes;
    json["ideal_passes"] = l.counts.ideal_passes;
    json["ways"] = l.counts.ways();
    json["worst_ways"] = l.worst_ways;
    json["broadcasts"] = l.counts.broadcasts;
  } else {
    json["sectors"] = l.counts.sectors;
    json["sectors_per_request"] = l.counts.sectors_per_request();
    json["coalescing_efficiency"] = l.counts.coalescing_efficiency();
  }
  return json;
}

Json counters_json(const ProblemCounters& counters) {
  Json json{{"is_exact", counters.is_exact}, {"basis", counters.basis}};
  for (const KernelTrace& trace : counters.kernels) {
    Json lines = Json::array();
    for (const AccessLine& line : access_lines(trace)) lines.push_back(line_json(line));
    json["kernels"].push_back({{"kernel", trace.configuration.kernel},
                               {"launches", trace.launches},
                               {"blocks", trace.blocks},
                               {"warps", trace.warps},
                               {"barriers", trace.barriers},
                               {"warp_operations", trace.warp_operations},
                               {"fmas", trace.fmas},
                               {"fmas_per_shared_load", trace.fmas_per_shared_load()},
                               {"lines", std::move(lines)}});
  }
  return json;
}

/// Compulsory traffic. That of attention has the fields of traffic_json(), so that it can be held
/// against a law.
Json compulsory_json(const Explanation& e) {
  if (e.problem.operation == &forward_operation) {
    return traffic_json(compulsory_traffic(e.problem), e.flops_visible);
  }
  return {{"read_bytes", e.compulsory_read},
          {"written_bytes", e.compulsory_written},
          {"flop_per_byte", e.flops_visible / (e.compulsory_read + e.compulsory_written)}};
}

Json work_json(const Explanation& e) {
  Json json{{"flops_visible", e.flops_visible}, {"flops_full", e.flops_full}};
  if (e.tiling) {
    json["flops_whole_tiles"] = tiled_flops(e.problem, *e.tiling);
    json["visited_tile_pairs_of_a_head"] = visited_tile_pairs(e.problem, *e.tiling);
    json["tile_pairs_of_a_head"] =
        query_tiles(e.problem, *e.tiling) * key_tiles(e.problem, *e.tiling);
  }
  json["exponentials"] = e.exponentials;
  json["tensor_bytes"] = tensors_of(e.problem).bytes;
  json["score_matrix_bytes"] = e.footprint.matrix;
  return json;
}

}  // namespace

Json explanation_json(const Explanation& e) {
  Json json{{"kernel", e.kernel->name},
            {"problem", to_string(e.problem)},
            {"plan", to_string(e.plan)},
            {"plan_origin", e.plan_origin.empty() ? "given" : e.plan_origin},
            {"device", device_json(*e.gpu, e.problem.element_type)},
            {"work", work_json(e)}};
  if (e.paging.is_used()) json["layouts"] = to_string(e.paging);
  Json& traffic = json["traffic"];
  traffic["compulsory"] = compulsory_json(e);
  if (e.l2) traffic["l2_model"] = l2_json(*e.l2, e.flops_visible);
  if (e.law) traffic["without_cache"] = traffic_json(*e.law, e.flops_visible);
  if (!e.why_no_traffic.empty()) traffic["not_known"] = e.why_no_traffic;
  json["launches"] = Json::array();
  for (const ExplainedLaunch& launch : e.launches) json["launches"].push_back(launch_json(launch));
  json["counters"] =
      e.counters ? counters_json(*e.counters) : Json{{"not_known", e.why_no_counters}};
  json["time_floors_s"] = {{"arithmetic", e.floors.flops},
                           {"memory", e.floors.dram},
                           {"l2", e.floors.l2},
                           {"exponentials", e.floors.exponentials},
                           {"shared_memory", e.floors.shared},
                           {"shared_memory_as_written", e.shared_as_written_s},
                           {"largest", largest_floor(e.floors)}};
  if (e.ranks) json["ranks"] = rank_scaling_json(*e.ranks);
  return json;
}

}  // namespace attest
