#include "cli/study_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/near_names.hpp"
#include "core/base/text.hpp"
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
  std::error_code none;
  if (!std::filesystem::exists(file, none)) {
    if (const ShippedStudy* shipped = find_shipped_study(file)) return std::string(shipped->text);
    std::vector<std::string> names;
    for (const ShippedStudy& study : shipped_studies()) names.emplace_back(study.name);
    const std::vector<std::string> near = near_names(file, names);
    throw InvalidInput(fmt::format(
        "{}: no such file or shipped study; {}", printable(file),
        near.empty() ? "see attest list studies" : fmt::format("near: {}", fmt::join(near, ", "))));
  }
  // A device or a pipe may never end.
  constexpr std::uintmax_t most_bytes = 1 << 20;
  if (!std::filesystem::is_regular_file(file, none)) {
    throw InvalidInput(fmt::format("{}: is no regular file", printable(file)));
  }
  if (std::filesystem::file_size(file, none) > most_bytes) {
    throw InvalidInput(fmt::format("{}: is larger than 1 MiB", printable(file)));
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw InvalidInput(fmt::format("{}: cannot be read", printable(file)));
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
