#include "cli/study_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/ledger_here.hpp"
#include "core/base/error.hpp"
#include "core/base/near_names.hpp"
#include "core/base/text.hpp"
#include "core/base/text_file.hpp"
#include "core/run/registry.hpp"
#include "core/run/tuning_key.hpp"
#include "experiments/study/shipped_studies.hpp"
#include "experiments/timing/median_interval.hpp"
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

/// Says on stderr which claims of the study the ledger has not; a program without one cannot tell.
bool has_known_claims(const StudySpec& spec, const std::string& file) {
  const auto tree = spec.claims.empty() ? std::nullopt : find_tree();
  if (!tree) return true;
  const std::vector<std::string> ids = ids_of(read_ledger(ledger_folder(*tree)));
  bool are_known = true;
  for (const std::string& claim : spec.claims) {
    if (std::ranges::find(ids, claim) != ids.end()) continue;
    fmt::print(stderr, "{}: 'claims' has '{}', no id of the ledger; see attest claims\n", file,
               printable(claim));
    are_known = false;
  }
  return are_known;
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
  constexpr std::size_t most_bytes = 1 << 20;
  return read_text_file(file, most_bytes);
}

std::optional<StudySpec> study_or_complaints(const std::string& text, const std::string& file) {
  ParsedStudy parsed = parse_study(text, std::filesystem::path(file).stem().string());
  for (const StudyError& error : parsed.errors) {
    fmt::print(stderr, "{}\n", to_string(error, file));
  }
  if (parsed.spec && !has_known_claims(*parsed.spec, file)) return std::nullopt;
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
