#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace attest {

/// Place of this process among those that a launcher of several started. The program links no MPI:
/// all that ranks share is the results folder, and their places stand in their environment.
struct Rank {
  std::int64_t index = 0, count = 1;
  std::int64_t local_index = 0;               ///< among those of this machine
  std::optional<std::int64_t> local_count{};  ///< nothing: the launcher does not say it
  std::string launcher{};                     ///< `Open MPI`, `PMI`, `Slurm`, `torchrun`
};

/// A variable's value; nullptr: not set.
using Environment = std::function<const char*(const char*)>;

/// Rank of this process by its environment; nothing when no launcher started it. Throws
/// InvalidInput naming the variable whose value is no number or out of range.
[[nodiscard]] std::optional<Rank> rank_from(const Environment& environment);

/// `rank 2 of 4 (Slurm)`, counted from 1.
[[nodiscard]] std::string to_string(const Rank& rank);

/// GPU that a rank takes, and whether another rank of its machine takes the same.
struct GpuBinding {
  std::string visible;     ///< for CUDA_VISIBLE_DEVICES; empty: there is no GPU
  std::int64_t gpus = 0;   ///< of the machine, or those that the environment leaves
  bool is_shared = false;  ///< more ranks than GPUs: their timings disturb each other
};
/// GPU local_index modulo the GPUs: those that CUDA_VISIBLE_DEVICES names, else all of the machine.
[[nodiscard]] GpuBinding gpu_of(const Rank& rank, const Environment& environment,
                                std::int64_t gpus_of_machine);
/// GPUs whose device files exist, without asking CUDA.
[[nodiscard]] std::int64_t gpus_of_machine();

}  // namespace attest
