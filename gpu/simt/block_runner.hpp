#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/simt/async_copy_queue.hpp"
#include "gpu/simt/block_synchronisation.hpp"
#include "gpu/simt/execution.hpp"
#include "gpu/simt/fiber.hpp"
#include "gpu/simt/hopper.hpp"
#include "gpu/simt/launch.hpp"
#include "gpu/simt/running_thread.hpp"
#include "gpu/simt/shared_memory.hpp"

namespace attest::simt {

class BlockCluster;
class FindingLog;
class GlobalMemory;
class LaunchTracer;
struct ProcessorFault;

/// One call of launch(), shared by the OS threads that work on it.
struct Launch {
  KernelCall call;
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  std::uint64_t block_count = 0;
  unsigned threads_per_block = 0;
  std::uint64_t seed = 0;          ///< of the schedule
  std::uint64_t first_serial = 0;  ///< block i has serial first_serial + i
  /// First serial of the launch before, which may still run; first_serial: it does not.
  std::uint64_t predecessor_serial = 0;
  const GlobalMemory* memory = nullptr;
  FindingLog* findings = nullptr;
  LaunchTracer* tracer = nullptr;  ///< set: accesses are counted, not checked
  std::atomic<std::uint64_t>* next_serial = nullptr;
  std::atomic<bool> abandoned = false;
  mutable BlockSynchronisation order;
};

/// Runs blocks, one after the other, on the OS thread that calls it: its CUDA threads are fibers,
/// which switch where they wait for each other. Warps advance in an order drawn anew after every
/// barrier, lanes of a warp in one drawn anew at every step; a warp runs until all its lanes wait
/// for the block or have exited.
class BlockRunner {
 public:
  BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// Binds the calling OS thread to the launch, until end().
  void begin(const Launch& launch);
  /// Runs a block; false when it could not finish because not all threads reached a barrier: that
  /// is then a finding.
  [[nodiscard]] bool run_block(std::uint64_t block_index);
  void end();

  /// End of a turn of a block of a cluster: the block ended, waits for the others of the cluster,
  /// or could not go on.
  enum class Turn { ended, waits, failed };
  /// Begins the block; the calling OS thread is not bound to it between its turns.
  void enter(BlockCluster& cluster, const Launch& launch, std::uint64_t block_index);
  /// Runs the block until it ends or waits for others.
  [[nodiscard]] Turn take_turn();
  /// Reports where the block waits in vain.
  void fail_waiting();
  void leave_cluster();
  /// True if threads wait for the cluster's barrier.
  [[nodiscard]] bool is_held_by_cluster() const;

  // What the CUDA built-ins call, on the fiber of the current thread.
  int sync_block(int predicate, const char* file, int line);
  std::uint64_t warp_exchange(WarpOperation operation, unsigned mask, std::uint64_t value,
                              unsigned source, const char* file, int line);
  void wait_for_predecessor();
  // cluster.hpp.
  void arrive_cluster();
  void wait_cluster(const char* file, int line);
  [[nodiscard]] BlockCluster* cluster() const { return cluster_; }
  /// The block's dynamic shared memory and its guards.
  [[nodiscard]] const ShadowedMemory& dynamic_shared() const { return dynamic_; }
  [[nodiscard]] ShadowedMemory shared_guards() const { return shared_.with_guards(); }
  [[nodiscard]] bool has_ended() const { return exited_count_ == thread_count_; }
  /// First stamp after the last barrier of the cluster.
  [[nodiscard]] Stamp cluster_barrier() const { return cluster_barrier_; }
  // hopper.hpp.
  void init_mbarrier(const void* barrier, unsigned arrivals);
  void arrive_mbarrier(const void* barrier, unsigned bytes);
  void arrive_after_copies(const void* barrier);
  void wait_mbarrier(const void* barrier, unsigned parity, const char* file, int line);
  void meet_named_barrier(int id, unsigned threads, bool waits, const char* file, int line);
  /// Waits for all threads of the warpgroup; `work` is called once, with what each brings.
  void multiply_group(const GroupProduct& mine,
                      void (*work)(const GroupProduct* const*, float* const*), const char* file,
                      int line);
  void commit_products() { ++products_[current_].committed; }
  void wait_for_products(unsigned newest);
  void add_copy(const BulkCopy& copy);
  void add_sum(BulkSum sum);
  void commit_sums();
  void wait_for_sums(bool until_read, unsigned newest);
  [[nodiscard]] unsigned lane() const { return current_ % warp_size; }
  [[nodiscard]] const Launch& launch() const { return *launch_; }
  /// True if the serial is one that this block had before its barriers outgrew the stamp's counter.
  [[nodiscard]] bool is_own_serial(std::uint64_t serial) const;
  /// The asynchronous copies of the current thread.
  [[nodiscard]] AsyncCopyQueue& async_copies();
  [[nodiscard]] bool has_async_copies() const { return !async_copies_.empty(); }
  void note_fence() { fenced_ = true; }
  void before_atomic() {
    if (fenced_) launch_->order.publish(serial_of(serial_stamp_));
  }
  void after_atomic() { acquired_ = launch_->order.see(); }
  /// State of BlockSynchronisation that the block saw at its last atomic operation; 0: it did none.
  [[nodiscard]] std::uint64_t acquired() const { return acquired_; }

  // processor_fault.hpp.
  /// Reports the fault of the current thread and ends the block; the thread never goes on.
  [[noreturn]] void abandon(const ProcessorFault& fault);
  /// True if the address is on the current thread's stack, or just below it, where a full one ends.
  [[nodiscard]] bool is_on_stack(std::uintptr_t address) const;

  void forget_shared_memory() { shared_.forget(); }

 private:
  static constexpr unsigned warp_size = 32;
  static constexpr unsigned max_warps = 32;

  struct Thread {
    Fiber* fiber = nullptr;  ///< none: not started
    uint3 index{};
    unsigned source = 0;
    std::uint64_t value = 0, result = 0;
    const char* file = nullptr;  ///< where it waits
    int line = 0;
    bool has_waited = false;     ///< for the launch before
    unsigned cluster_phase = 0;  ///< of the cluster's barrier, for whose end it waits
    unsigned bulk_groups = 0;    ///< that it has made
  };
  /// Lanes that meet at one warp operation.
  struct Meeting {
    unsigned mask = 0, arrived = 0;
    WarpOperation operation{};
  };
  struct Warp {
    unsigned ready = 0, at_barrier = 0, exited = 0;
    unsigned epoch = 0;
    unsigned meetings = 0;
    std::array<Meeting, warp_size> meeting;
  };

  /// [PTX ISA, mbarrier].
  struct Mbarrier {
    unsigned arrivals = 0, pending = 0;
    std::int64_t bytes = 0;
    unsigned phase = 0;  ///< phases that are over
  };
  struct NamedBarrier {
    unsigned arrived = 0;
  };
  struct Group {
    unsigned arrived = 0;
    std::array<const GroupProduct*, 128> products{};
  };

  /// Products of one thread that may still be under way.
  struct Products {
    struct Pending {
      float* d;
      std::vector<float> result;
      unsigned group;
    };
    std::vector<Pending> pending;
    unsigned committed = 0;  ///< groups so far
  };

  void fiber_body();
  void run_ready();
  void bind(RunningThread& place);
  void end_cluster_phase();
  [[nodiscard]] bool deliver_copies(const void* barrier);
  [[nodiscard]] bool deliver_arrivals(const void* barrier);
  [[nodiscard]] bool is_awaited(const void* barrier) const;
  void leave_sums();
  void deliver_late_sums();
  [[nodiscard]] float* result_of(unsigned thread, const GroupProduct& product);
  void finish_phase(const void* barrier, Mbarrier& state);
  /// The current thread goes on when `key` is woken.
  void sleep(const void* key, const char* file, int line);
  void wake(const void* key);
  void next_interval();
  void start_block(std::uint64_t block_index);
  void start_interval();
  void start_trace();
  [[nodiscard]] bool pick_next();
  [[nodiscard]] bool release_barrier();
  void make_current(unsigned thread);
  void wait();
  void finish(Warp& warp, unsigned meeting);
  void exchange(const Meeting& meeting, Thread* lanes);
  void finish_meetings_without(Warp& warp);
  [[nodiscard]] std::string describe_wait(unsigned thread) const;
  void report_divergence();
  void report_incomplete_collective(const Thread& thread);
  std::uint64_t draw();

  RunningThread* running_ = nullptr;
  const Launch* launch_ = nullptr;
  SharedMemory shared_;
  ShadowedMemory dynamic_;           ///< of shared_: the part that the launch asked for
  BlockCluster* cluster_ = nullptr;  ///< of the block, if it has one
  Stamp cluster_barrier_ = 0;
  RunningThread between_turns_;  ///< what the OS thread knows of the block at its turn
  FiberPool fibers_;
  Fiber main_;
  Fiber* current_fiber_ = nullptr;

  unsigned thread_count_ = 0, warp_count_ = 0, exited_count_ = 0;
  unsigned current_ = 0;  ///< thread
  unsigned order_position_ = 0;
  std::array<std::uint8_t, max_warps> order_{};
  std::array<Warp, max_warps> warps_;
  std::vector<Thread> threads_;
  std::vector<AsyncCopyQueue> async_copies_;  ///< one a thread; empty: no block made a copy yet
  std::unordered_map<const void*, Mbarrier> mbarriers_;
  std::array<NamedBarrier, 16> named_barriers_{};
  std::array<Group, max_warps / 4> groups_{};
  std::vector<BulkCopy> copies_;
  /// An arrival that comes once the first copies of a thread have arrived.
  struct CopyArrival {
    const void* barrier;
    unsigned thread;
    std::uint64_t copies;
  };
  std::vector<CopyArrival> copy_arrivals_;
  std::vector<BulkSum> sums_, late_sums_;
  bool copies_at_once_ = false;     ///< in this block
  bool warps_overtake_ = false;     ///< in this block: others go first in between warp operations
  std::vector<Products> products_;  ///< one a thread
  struct Sleeper {
    const void* key;
    unsigned thread;
  };
  std::vector<Sleeper> sleepers_;
  std::uint64_t random_ = 0;
  unsigned interval_ = 0;
  Stamp serial_stamp_ = 0;
  std::vector<std::uint64_t> earlier_serials_;  ///< when its barriers outgrew a stamp's counter
  bool fenced_ = false;
  std::uint64_t acquired_ = 0;
  int barrier_count_ = 0, barrier_result_ = 0;  ///< of sync_block's predicate
  bool diverged_ = false;
};

}  // namespace attest::simt
