#include "gpu/simt/block_cluster.hpp"

#include <algorithm>
#include <utility>

#include "core/inputs/random.hpp"
#include "gpu/simt/block_runner.hpp"
#include "gpu/simt/cluster.hpp"

namespace attest::simt {

BlockCluster::BlockCluster(std::vector<BlockRunner*> runners, const Launch& launch,
                           std::uint64_t first_block)
    : blocks_(std::move(runners)),
      launch_(launch),
      first_block_(first_block),
      first_serial_(launch.first_serial + first_block) {}

bool BlockCluster::run() {
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    blocks_[i]->enter(*this, launch_, first_block_ + i);
  std::vector<BlockRunner*> ready = blocks_, waiting;
  bool is_well = true;
  for (std::uint64_t turn = 0; is_well && !(ready.empty() && waiting.empty()); ++turn) {
    if (ready.empty()) {
      waiting.front()->fail_waiting();
      is_well = false;
      break;
    }
    const auto drawn =
        ready.begin() +
        static_cast<std::ptrdiff_t>(random_bits(launch_.seed, first_block_, turn) % ready.size());
    BlockRunner* const block = *drawn;
    ready.erase(drawn);
    const BlockRunner::Turn end = block->take_turn();
    is_well = end != BlockRunner::Turn::failed;
    if (end == BlockRunner::Turn::waits) waiting.push_back(block);
    std::erase_if(waiting, [&](BlockRunner* one) {
      if (one->is_held_by_cluster()) return false;
      ready.push_back(one);
      return true;
    });
  }
  for (BlockRunner* const block : blocks_) block->leave_cluster();
  return is_well;
}

bool BlockCluster::arrive() {
  if (++arrived_ < launch_.threads_per_block * blocks_.size()) return false;
  arrived_ = 0;
  ++phase_;
  return true;
}

bool BlockCluster::is_before_barrier(Stamp access) const {
  const BlockRunner& block = *blocks_[serial_of(access) - first_serial_];
  return (access & ~incomplete) < block.cluster_barrier();
}

const ShadowedMemory* BlockCluster::shared_at(std::uintptr_t address) const {
  for (const BlockRunner* const block : blocks_) {
    const ShadowedMemory& shared = block->dynamic_shared();
    if (address - shared.base < shared.size_bytes && !block->has_ended()) return &shared;
  }
  return nullptr;
}

bool BlockCluster::is_in_guards(std::uintptr_t address) const {
  return std::ranges::any_of(blocks_, [&](const BlockRunner* block) {
    const ShadowedMemory all = block->shared_guards();
    return address - all.base < all.size_bytes;
  });
}

// The block's part.

/// The OS thread's knowledge of the block is kept at `place`.
void BlockRunner::bind(RunningThread& place) {
  place = *running_;
  running_ = &place;
}

void BlockRunner::enter(BlockCluster& cluster, const Launch& launch, std::uint64_t block_index) {
  begin(launch);
  start_block(block_index);
  cluster_ = &cluster;
  cluster_barrier_ = serial_stamp_;
  running_->is_in_cluster = true;
  running_->shared.size_bytes = 0;
  running_->shared_guards = {0, ~std::size_t{0}};
  bind(between_turns_);
  running_thread = RunningThread{};
}

BlockRunner::Turn BlockRunner::take_turn() {
  bind(running_thread);
  run_ready();
  bind(between_turns_);
  running_thread = RunningThread{};
  if (diverged_) return Turn::failed;
  return has_ended() ? Turn::ended : Turn::waits;
}

void BlockRunner::fail_waiting() {
  report_divergence();
}

void BlockRunner::leave_cluster() {
  if (!has_ended()) fibers_.discard_running();
  cluster_ = nullptr;
  running_ = nullptr;
}

bool BlockRunner::is_held_by_cluster() const {
  return cluster_ != nullptr &&
         std::ranges::any_of(sleepers_, [&](const Sleeper& s) { return s.key == cluster_; });
}

void BlockRunner::arrive_cluster() {
  threads_[current_].cluster_phase = cluster_->phase() + 1;
  if (!cluster_->arrive()) return;
  for (BlockRunner* const block : cluster_->blocks()) block->end_cluster_phase();
  make_current(current_);
}

void BlockRunner::end_cluster_phase() {
  wake(cluster_);
  next_interval();
  cluster_barrier_ = running_->interval_start;
}

void BlockRunner::wait_cluster(const char* file, int line) {
  while (cluster_->phase() < threads_[current_].cluster_phase) sleep(cluster_, file, line);
}

// What kernels call.

void* in_block_of_cluster(void* shared, int rank) noexcept {
  const BlockRunner& own = *running_thread.runner;
  const BlockRunner& other = *own.cluster()->blocks().at(static_cast<std::size_t>(rank));
  return static_cast<std::byte*>(shared) +
         static_cast<std::ptrdiff_t>(other.dynamic_shared().base - own.dynamic_shared().base);
}
void arrive_cluster() {
  running_thread.runner->arrive_cluster();
}
void wait_cluster(const char* file, int line) {
  running_thread.runner->wait_cluster(file, line);
}

}  // namespace attest::simt
