#include "cli/study_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "core/base/error.hpp"
#include "core/inputs/safetensors.hpp"
#include "core/run/registry.hpp"
#include "core/run/tuning_key.hpp"
#include "experiments/study/shipped_studies.hpp"
#include "experiments/tuning/median_interval.hpp"
#include "gpu/simt/trace_kernel.hpp"

namespace attest {
namespace {

/// The row of the device table for this machine's GPU, else the one that was named.
const GpuModel& model_of(const std::string& gpu_name, const std::string& named) {
  for (const GpuModel& gpu : all_gpu_models()) {
    if (gpu.driver_name == gpu_name) return gpu;
  }
  return gpu_model_from_name(named);
}

}  // namespace

std::string study_text(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file)) {
    if (const ShippedStudy* shipped = find_shipped_study(file)) return std::string(shipped->text);
    throw InvalidInput(fmt::format("{}: cannot be read", printable(file)));
  }
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::optional<StudySpec> study_or_complaints(const std::string& text, const std::string& file) {
  ParsedStudy parsed = parse_study(text, std::filesystem::path(file).stem().string());
  for (const StudyError& error : parsed.errors) {
    fmt::print(stderr, "{}\n", to_string(error, file));
  }
  return std::move(parsed.spec);
}

const GpuModel& gpu_model_here(const std::string& device) {
  if (!why_unavailable(Executor::gpu).empty()) return gpu_model_from_name(device);
  const std::string description = make_device(Executor::gpu)->description();
  return model_of(std::string(gpu_name_in(description)), device);
}

std::string gpu_that_runs(const StudySpec& spec) {
  if (spec.executor.value_or(Executor::gpu) != Executor::gpu) return {};
  if (!why_unavailable(Executor::gpu).empty()) return {};
  return std::string(gpu_name_in(make_device(Executor::gpu)->description()));
}

Expansion expand_here(const StudySpec& spec, const std::string& device) {
  ExpansionContext context{.gpu_name = gpu_that_runs(spec),
                           .has_gpu = why_unavailable(Executor::gpu).empty(),
                           .launches_of = observe_launches};
  context.gpu = &model_of(context.gpu_name, device);
  return expand(spec, context);
}

void print_skipped(const Expansion& expansion) {
  std::map<std::pair<std::string_view, std::string>, std::size_t> counts;
  for (const Skipped& skipped : expansion.skipped) ++counts[{name_of(skipped.by), skipped.reason}];
  for (const auto& [reason, count] : counts) {
    fmt::print("  {:>5} skipped by {}: {}\n", count, reason.first, reason.second);
  }
}

void print_few_rounds(const StudySpec& spec) {
  constexpr auto fewest = static_cast<std::int64_t>(fewest_values);
  if (!spec.repeats || *spec.repeats >= fewest) return;
  fmt::print("  {} rounds have no interval, so that nothing about times is decided; {} have one\n",
             *spec.repeats, fewest);
}

}  // namespace attest
