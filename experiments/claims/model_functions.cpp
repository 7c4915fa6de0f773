#include <fmt/format.h>

#include <map>
#include <string_view>
#include <vector>

#include "core/attention/grid_order.hpp"
#include "core/attention/problem.hpp"
#include "core/base/error.hpp"
#include "experiments/claims/functions.hpp"
#include "gpu/model/block_size.hpp"
#include "gpu/model/cost_model.hpp"
#include "gpu/model/device_table.hpp"
#include "gpu/model/l2_model.hpp"
#include "gpu/model/occupancy.hpp"

namespace attest {
namespace {

using FormulaValues = std::span<const FormulaValue>;

Problem problem_of(FormulaValues a, std::size_t i) {
  return problem_from_string(text_of(a, i));
}

const GpuModel& gpu_of(FormulaValues a) {
  return gpu_model_from_name(text_of(a, 0));
}

Dataflow dataflow_of(FormulaValues a) {
  const std::string& name = text_of(a, 0);
  if (name == "standard") return Dataflow::standard;
  if (name == "keys_outside") return Dataflow::keys_outside;
  if (name == "queries_outside") return Dataflow::queries_outside;
  throw InvalidInput(
      fmt::format("dataflow '{}' is none of standard, keys_outside, queries_outside", name));
}

Tiling tiling_of(FormulaValues a, std::size_t i) {
  return {.query_tile = integer_of(a, i), .key_tile = integer_of(a, i + 1)};
}

Traffic without_cache(FormulaValues a) {
  Tiling tiling = tiling_of(a, 2);
  if (a.size() > 4) tiling.passes = integer_of(a, 4);
  return traffic_without_cache(dataflow_of(a), problem_of(a, 1), tiling);
}

/// The documents count no LSE.
double without_lse(const Traffic& traffic) {
  return traffic.total() - traffic.lse;
}

L2Counts simulated_anew(FormulaValues a) {
  const std::string& order = text_of(a, 4);
  if (order != "q_fastest" && order != "q_slowest") {
    throw InvalidInput(fmt::format("order '{}' is none of q_fastest, q_slowest", order));
  }
  const L2Launch launch{
      .problem = problem_of(a, 1),
      .tiling = tiling_of(a, 2),
      .grid_order = order == "q_fastest" ? GridOrder::q_fastest : GridOrder::q_slowest,
      .resident_blocks = integer_of(a, 5)};
  if (const auto simulation = simulate_l2(launch, gpu_of(a))) return simulation->counts;
  throw InvalidInput("the launch is too large to simulate");
}

/// Several claims ask about one launch, and a simulation takes up to a second.
L2Counts simulated(FormulaValues a) {
  static std::map<std::vector<FormulaValue>, L2Counts> known;
  const std::vector<FormulaValue> key(a.begin(), a.end());
  const auto found = known.find(key);
  return found != known.end() ? found->second : known.emplace(key, simulated_anew(a)).first->second;
}

double gpu_number(const GpuModel& gpu, std::string_view name) {
  if (name == "sms") return static_cast<double>(gpu.sms);
  if (name == "warps_per_sm") return static_cast<double>(gpu.warps_per_sm);
  if (name == "sub_partitions") return static_cast<double>(gpu.sub_partitions);
  if (name == "shared_per_sm_bytes") return static_cast<double>(gpu.shared_per_sm_bytes);
  if (name == "shared_per_block_bytes") return static_cast<double>(gpu.shared_per_block_bytes);
  if (name == "shared_reserved_bytes") return static_cast<double>(gpu.shared_reserved_bytes);
  if (name == "l2_bytes") return static_cast<double>(gpu.l2_bytes);
  if (name == "dram_bytes") return gpu.dram_bytes;
  if (name == "dram_bytes_per_s") return gpu.dram_bytes_per_s;
  if (name == "fp32_flops") return gpu.fp32_flops;
  if (name == "tf32_flops") return gpu.tf32_flops;
  if (name == "fp16_flops") return gpu.fp16_flops;
  if (name == "shared_bytes_per_s") {
    return static_cast<double>(gpu.sms) * gpu.shared_bytes_per_clock_sm * gpu.boost_hz;
  }
  throw InvalidInput(fmt::format("'{}' is no number of the device table", name));
}

Occupancy block_occupancy(FormulaValues a) {
  return occupancy_of(gpu_of(a), {.threads = integer_of(a, 1), .shared_bytes = integer_of(a, 2)},
                      1 << 20);
}

std::int64_t block_bytes(FormulaValues a) {
  const Problem problem = problem_of(a, 0);
  return shared_bytes(
      {.head_dim = problem.head_dim,
       .element_bytes = static_cast<std::int64_t>(format_of(problem.element_type).size_bytes),
       .stages = integer_of(a, 1),
       .score_bytes = integer_of(a, 2),
       .output_bytes = integer_of(a, 3),
       .statistics_bytes = integer_of(a, 4)},
      {integer_of(a, 5), integer_of(a, 6)});
}

}  // namespace

void add_models(FormulaScope& scope) {
  const auto add = [&scope](const char* name, std::size_t count, auto compute) {
    scope.functions[name] = [count, compute](FormulaValues a) {
      require_arguments(a, count, count);
      return static_cast<double>(compute(a));
    };
  };
  add("flops", 1, [](FormulaValues a) { return full_flops(problem_of(a, 0)); });
  add("visible_flops", 1, [](FormulaValues a) { return forward_flops(problem_of(a, 0)); });
  add("tiled_flops", 3,
      [](FormulaValues a) { return tiled_flops(problem_of(a, 0), tiling_of(a, 1)); });
  add("exponentials", 1, [](FormulaValues a) { return exponentials(problem_of(a, 0)); });
  add("tile_pairs", 3,
      [](FormulaValues a) { return visited_tile_pairs(problem_of(a, 0), tiling_of(a, 1)); });
  add("matrix_bytes", 1, [](FormulaValues a) { return footprint_of(problem_of(a, 0)).matrix; });
  add("tensor_bytes", 1, [](FormulaValues a) { return footprint_of(problem_of(a, 0)).tensors; });
  scope.functions["moved"] = [](FormulaValues a) {
    require_arguments(a, 4, 5);
    return without_lse(without_cache(a));
  };
  add("moved_statistics", 4, [](FormulaValues a) { return without_cache(a).statistics; });
  add("read", 4, [](FormulaValues a) { return without_cache(a).read(); });
  add("compulsory", 1,
      [](FormulaValues a) { return without_lse(compulsory_traffic(problem_of(a, 0))); });
  add("compulsory_read", 1,
      [](FormulaValues a) { return compulsory_traffic(problem_of(a, 0)).read(); });
  add("l2_read", 6, [](FormulaValues a) { return simulated(a).dram_read; });
  add("l2_hits", 6, [](FormulaValues a) { return simulated(a).read_hit_rate(); });
  add("gpu", 2, [](FormulaValues a) { return gpu_number(gpu_of(a), text_of(a, 1)); });
  add("ridge", 2, [](FormulaValues a) { return ridge(gpu_of(a), problem_of(a, 1).element_type); });
  add("blocks", 3, [](FormulaValues a) { return block_occupancy(a).blocks; });
  add("occupancy", 3, [](FormulaValues a) { return block_occupancy(a).share; });
  add("block_bytes", 7, [](FormulaValues a) { return block_bytes(a); });
}

}  // namespace attest
