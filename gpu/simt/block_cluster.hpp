#pragma once

#include <cstdint>
#include <vector>

#include "gpu/simt/running_thread.hpp"

namespace attest::simt {

class BlockRunner;
struct Launch;

inline constexpr unsigned most_in_cluster = 8;  ///< what every GPU with clusters takes

/// The blocks of a cluster, which run by turns on one OS thread, each on a runner of its own until
/// all of its threads wait for others of the cluster. Whose turn it is is drawn.
class BlockCluster {
 public:
  /// Blocks first_block and following of the launch, one for each of `runners`.
  BlockCluster(std::vector<BlockRunner*> runners, const Launch& launch, std::uint64_t first_block);

  /// Runs the blocks of the cluster; false when one could not go on: that is then a finding.
  [[nodiscard]] bool run();

  // What the blocks ask.
  [[nodiscard]] const std::vector<BlockRunner*>& blocks() const { return blocks_; }
  /// One more thread has come to the barrier; true: it was the last one, and another phase begins.
  [[nodiscard]] bool arrive();
  [[nodiscard]] unsigned arrived() const { return arrived_; }
  /// Phases of the barrier that are over.
  [[nodiscard]] unsigned phase() const { return phase_; }

  // What the checks of memory ask.
  [[nodiscard]] bool has(std::uint64_t serial) const {
    return serial - first_serial_ < blocks_.size();
  }
  /// True if the access, which a block of the cluster made, was before the last barrier. Whoever
  /// has waited comes after whoever has arrived; that everybody else does too is more than the
  /// hardware says.
  [[nodiscard]] bool is_before_barrier(Stamp access) const;
  /// The shared memory that holds the address, of a block that runs; null: none.
  [[nodiscard]] const ShadowedMemory* shared_at(std::uintptr_t address) const;
  /// True for an address in the shared memory of a block that has ended, or beside that of any
  /// block.
  [[nodiscard]] bool is_in_guards(std::uintptr_t address) const;

 private:
  std::vector<BlockRunner*> blocks_;  ///< by rank
  const Launch& launch_;
  const std::uint64_t first_block_, first_serial_;
  unsigned arrived_ = 0, phase_ = 0;
};

}  // namespace attest::simt
