#include "core/run/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/base/error.hpp"

namespace attest {
namespace {

/// Variables in which a launcher gives its numbers; several names: the first that is set counts.
struct Launcher {
  const char* name;
  const char* index;
  std::vector<const char*> count, local_index, local_count;
  const char* mark = nullptr;  ///< is set too, where the other names alone could be anybody's
};

const std::vector<Launcher>& launchers() {
  static const std::vector<Launcher> table{
      {"Open MPI",
       "OMPI_COMM_WORLD_RANK",
       {"OMPI_COMM_WORLD_SIZE"},
       {"OMPI_COMM_WORLD_LOCAL_RANK"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE"}},
      {"PMI", "PMI_RANK", {"PMI_SIZE"}, {"MPI_LOCALRANKID", "SLURM_LOCALID"}, {"MPI_LOCALNRANKS"}},
      // Of a step, which srun makes. A job's own script has SLURM_PROCID 0 and SLURM_NTASKS too,
      // and runs once: as rank 0 of many it would leave most points out.
      {"Slurm", "SLURM_PROCID", {"SLURM_STEP_NUM_TASKS"}, {"SLURM_LOCALID"}, {}},
      {"torchrun",
       "RANK",
       {"WORLD_SIZE"},
       {"LOCAL_RANK"},
       {"LOCAL_WORLD_SIZE"},
       "TORCHELASTIC_RUN_ID"},
  };
  return table;
}

std::optional<std::int64_t> number(const Environment& environment,
                                   const std::vector<const char*>& names, std::int64_t least) {
  for (const char* const name : names) {
    const char* const text = environment(name);
    if (text == nullptr || *text == '\0') continue;
    const std::string_view view(text);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
    if (error != std::errc() || end != view.data() + view.size() || value < least) {
      throw InvalidInput(fmt::format("environment variable {} is '{}'; allowed: {} or more", name,
                                     view.substr(0, 40), least));
    }
    return value;
  }
  return std::nullopt;
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

}  // namespace

std::optional<Rank> rank_from(const Environment& environment) {
  for (const Launcher& launcher : launchers()) {
    if (launcher.mark != nullptr && environment(launcher.mark) == nullptr) continue;
    const auto index = number(environment, {launcher.index}, 0);
    const auto count = number(environment, launcher.count, 1);
    if (!index || !count) continue;
    if (*index >= *count) {
      throw InvalidInput(fmt::format("environment variable {} is {}; allowed: 0 to {}, of {} ranks",
                                     launcher.index, *index, *count - 1, *count));
    }
    return Rank{.index = *index,
                .count = *count,
                .local_index = number(environment, launcher.local_index, 0).value_or(*index),
                .local_count = number(environment, launcher.local_count, 1),
                .launcher = launcher.name};
  }
  return std::nullopt;
}

std::string to_string(const Rank& rank) {
  return fmt::format("rank {} of {} ({})", rank.index + 1, rank.count, rank.launcher);
}

GpuBinding gpu_of(const Rank& rank, const Environment& environment, std::int64_t gpus_of_machine) {
  std::vector<std::string> visible;
  if (const char* const chosen = environment("CUDA_VISIBLE_DEVICES")) {
    visible = split_at_commas(chosen);
  } else {
    for (std::int64_t i = 0; i < gpus_of_machine; ++i) visible.push_back(fmt::format("{}", i));
  }
  if (visible.empty()) return {};
  GpuBinding binding;
  binding.gpus = static_cast<std::int64_t>(visible.size());
  binding.visible = visible[static_cast<std::size_t>(rank.local_index % binding.gpus)];
  // With one GPU named, the launcher has bound each rank itself.
  const bool is_bound = binding.gpus == 1 && environment("CUDA_VISIBLE_DEVICES") != nullptr;
  binding.is_shared = !is_bound && rank.local_count.value_or(rank.local_index + 1) > binding.gpus;
  return binding;
}

std::int64_t gpus_of_machine() {
  std::int64_t count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view prefix = "nvidia";
    if (!name.starts_with(prefix) || name.size() == prefix.size()) continue;
    count += std::ranges::all_of(name.substr(prefix.size()),
                                 [](char c) { return c >= '0' && c <= '9'; });
  }
  return count;
}

}  // namespace attest
