#include "experiments/study/language/model_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/attention/operation.hpp"
#include "core/base/error.hpp"
#include "core/run/registry.hpp"
#include "experiments/study/language/study_names.hpp"
#include "gpu/model/compiled_kernels.hpp"
#include "gpu/model/cost_model.hpp"
#include "gpu/model/occupancy.hpp"

namespace attest {
namespace {

const CompiledKernel* machine_code_of(std::string_view name, int compute_capability) {
  static const std::vector<CompiledKernel> compiled = compiled_kernels();
  const auto found = std::ranges::find_if(compiled, [&](const CompiledKernel& kernel) {
    return kernel.name == name && kernel.compute_capability == compute_capability;
  });
  return found == compiled.end() ? nullptr : &*found;
}

}  // namespace

const std::vector<ModelValueName>& model_value_names() {
  static const std::vector<ModelValueName> names{
      {"flops", Dimension::number, "of the visible pairs"},
      {"hbm_bytes", Dimension::bytes, "each input read once, each output written once"},
      {"tile_pairs", Dimension::number, "tiles of scores that the Plan visits, of all heads"},
      {"shared_bytes", Dimension::bytes, "shared memory of a block"},
      {"registers", Dimension::number, "of a thread, from the machine code in the program"},
      {"threads", Dimension::number, "of a block"},
      {"grid_blocks", Dimension::number, "blocks of the launch"},
      {"blocks_per_sm", Dimension::number, "blocks that an SM holds at a time"},
      {"occupancy", Dimension::number, "their warps over those that an SM could hold, 0 to 1"},
      {"waves", Dimension::number, "blocks of the launch over those that run at a time"}};
  return names;
}

ModelValues::ModelValues(const KernelInfo& kernel, const Case& subject,
                         const ExpansionContext& context)
    : kernel_(kernel), subject_(subject), context_(context) {}

void ModelValues::look_at_launches() {
  if (std::exchange(has_looked_, true)) return;
  const KernelInfo* twin = find_kernel(kernel_.name, Executor::simt);
  if (!context_.launches_of || twin == nullptr) {
    why_no_launches_ = fmt::format("{} does not run on the SIMT executor", kernel_.name);
    return;
  }
  const GpuModel& gpu = *context_.gpu;
  const ResidentBlocks resident_blocks = [&](const LaunchConfiguration& c) {
    asks_for_blocks_ = true;
    BlockNeeds needs{.threads = c.block.count(), .shared_bytes = c.dynamic_shared_bytes};
    if (const CompiledKernel* code = machine_code_of(c.kernel, gpu.compute_capability)) {
      needs.registers_per_thread = code->registers;
      needs.shared_bytes += code->static_shared_bytes;
    }
    return blocks_at_once(gpu, needs);
  };
  try {
    for (const LaunchConfiguration& c : context_.launches_of(
             *twin, subject_.problem, subject_.plan, {resident_blocks, subject_.layouts.paging})) {
      const CompiledKernel* code = machine_code_of(c.kernel, gpu.compute_capability);
      const std::int64_t fixed = code == nullptr ? 0 : code->static_shared_bytes;
      launches_.push_back(
          {.configuration = c,
           .registers = code == nullptr ? Value::missing("no machine code of it is in this program")
                                        : Value::number(code->registers),
           .shared_bytes = Value::number(static_cast<double>(c.dynamic_shared_bytes + fixed))});
    }
  } catch (const InvalidInput& error) {
    why_no_launches_ = error.what();
  }
  if (launches_.empty() && why_no_launches_.empty()) why_no_launches_ = "it launches nothing";
}

Value ModelValues::value(std::string_view name) {
  const Problem& problem = subject_.problem;
  if (name == "flops") return Value::number(problem.operation->flops(problem));
  if (name == "hbm_bytes") return Value::number(problem.operation->bytes(problem));
  if (name == "tile_pairs") {
    if (subject_.plan.query_tile < 1 || subject_.plan.key_tile < 1) {
      return Value::missing("tile_pairs: the Plan names no tiles");
    }
    return Value::number(static_cast<double>(
        problem.batch * problem.query_heads *
        visited_tile_pairs(problem, tiling_of(kernel_, problem, subject_.plan))));
  }
  const auto& names = model_value_names();
  if (std::ranges::find(names, name, &ModelValueName::name) == names.end()) {
    return identity_value(name, kernel_.executor, subject_);
  }
  look_at_launches();
  if (launches_.empty()) return Value::missing(fmt::format("{}: {}", name, why_no_launches_));
  const Launch& launch = *std::ranges::max_element(
      launches_, {}, [](const Launch& l) { return l.configuration.grid.count(); });
  const std::int64_t threads = launch.configuration.block.count();
  if (name == "registers") return launch.registers;
  if (name == "shared_bytes") return launch.shared_bytes;
  if (name == "threads") return Value::number(static_cast<double>(threads));
  const std::int64_t blocks = launch.configuration.grid.count();
  // Without machine code registers do not limit: an upper bound is no value.
  const bool has_code = launch.registers.kind != Value::Kind::missing;
  if (name == "grid_blocks" && asks_for_blocks_ && !has_code) {
    return Value::missing(
        fmt::format("{}: blocks are as many as the device holds; {}", name, launch.registers.text));
  }
  if (name == "grid_blocks") return Value::number(static_cast<double>(blocks));
  if (!has_code) return Value::missing(fmt::format("{}: {}", name, launch.registers.text));
  const Occupancy occupancy =
      occupancy_of(*context_.gpu,
                   {.threads = threads,
                    .registers_per_thread = static_cast<std::int64_t>(launch.registers.mid),
                    .shared_bytes = static_cast<std::int64_t>(launch.shared_bytes.mid)},
                   blocks);
  if (name == "blocks_per_sm") return Value::number(static_cast<double>(occupancy.blocks));
  if (name == "occupancy") return Value::number(occupancy.share);
  const double at_a_time = static_cast<double>(occupancy.blocks * context_.gpu->sms);
  return at_a_time == 0 ? Value::missing("waves: a block does not fit")
                        : Value::number(static_cast<double>(blocks) / at_a_time);
}

}  // namespace attest
