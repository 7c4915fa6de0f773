#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "cli/verify.hpp"
#include "core/base/counted.hpp"
#include "core/base/progress.hpp"

namespace attest {

std::optional<Rank> take_rank(VerifyOptions& options) {
  if (options.has_shard) return std::nullopt;
  const Environment environment = [](const char* name) { return std::getenv(name); };
  const std::optional<Rank> rank = rank_from(environment);
  if (!rank || rank->count == 1) return std::nullopt;
  if (options.is_large || !options.minimize.empty()) {
    throw InvalidInput(
        fmt::format("{}: {} is not shared by ranks; allowed: one process, or --shard "
                    "1/1, which ignores who else was started",
                    to_string(*rank), options.is_large ? "--large" : "--minimize"));
  }
  if (const GpuBinding gpu = gpu_of(*rank, environment, gpus_of_machine()); !gpu.visible.empty()) {
    (void)::setenv("CUDA_VISIBLE_DEVICES", gpu.visible.c_str(), 1);
  }
  if (!options.has_jobs) {
    const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
    const std::int64_t here = rank->local_count.value_or(1);
    options.campaign.jobs = static_cast<int>(std::max<std::int64_t>(1, cores / here));
  }
  return rank;
}

std::optional<ExitCode> work_as_rank(const Rank& rank, SharedCampaign& shared,
                                     const VerifyOptions& options,
                                     const std::vector<const KernelInfo*>& kernels,
                                     CampaignState& state) {
  state = shared.join(state);
  const std::string who = to_string(rank);
  if (has_nothing_left(state, kernels, options.campaign)) {
    if (rank.index == 0) return std::nullopt;  // shows it again
    fmt::print("{}: the campaign in {} was finished before\n", who, options.out.string());
    return ExitCode::passed;
  }
  Share share = shared.take_part();
  if (share.is_interrupted) {
    fmt::print(stderr,
               "attest: {} interrupted; what is done is kept: start the ranks again, or attest "
               "verify --resume --out {}\n",
               who, options.out.string());
    return ExitCode::interrupted;
  }
  if (!share.whole) {
    fmt::print("{}: judged {} in {}; another rank reports\n", who, counted(share.cases, "case"),
               format_duration(share.seconds));
    return ExitCode::passed;
  }
  fmt::print("{}: judged {} in {}, and reports what all found\n", who, counted(share.cases, "case"),
             format_duration(share.seconds));
  state.results = *std::move(share.whole);
  state.seconds = share.seconds;
  state.is_finished = false;
  return std::nullopt;
}

}  // namespace attest
