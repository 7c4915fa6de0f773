#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/run/arguments.hpp"
#include "gpu/runtime/process_devices.hpp"

namespace attest {
inline namespace on_gpu {

/// Form in which the ranks' processes are asked for a launch.
struct RankTimes {
  int timed = 0;          ///< so many in a row, behind one that is not; 0: one, and no time
  bool exchanges = true;  ///< false, of those that are timed: ranks send each other nothing
};

/// Asks plan.ranks processes, which `work` of RankWorkRegistration computes in, for a launch:
/// starts those that there are not, rank r on GPU r modulo those there are, from the caller's on.
/// They read and write copies of the buffers of the tensors, which come back as a whole. Returns
/// the slowest rank's milliseconds, of one launch. For one thread, whose processes they stay.
/// Throws what RankProcesses::ask does.
double ask_ranks(std::string_view work, const Arguments& arguments, Device& device,
                 const RankTimes& times);

/// A launch in a rank's process: the caller's tensors as they are there, and its place.
class RankVisit {
 public:
  /// `task`: what ask_ranks() sent. Throws MachineError.
  RankVisit(const std::string& task, RankChannel& channel);

  [[nodiscard]] const Arguments& arguments() const { return arguments_; }
  [[nodiscard]] const RankTimes& times() const { return times_; }
  [[nodiscard]] RankPlace& place() { return place_; }
  /// Its answer.
  [[nodiscard]] static std::string answer(double ms);

 private:
  RankPlace place_;
  std::vector<OpenedMemory> callers_;
  Arguments arguments_;
  RankTimes times_;
};

}  // namespace on_gpu
}  // namespace attest
