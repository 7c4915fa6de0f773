#include "gpu/simt/block_runner.hpp"

#include <algorithm>
#include <bit>

#include "gpu/simt/finding_log.hpp"
#include "gpu/simt/global_memory.hpp"
#include "gpu/simt/launch_tracer.hpp"
#include "gpu/simt/processor_fault.hpp"

namespace attest::simt {

constinit thread_local RunningThread running_thread;

BlockRunner::BlockRunner()
    : fibers_([](void* self) { static_cast<BlockRunner*>(self)->fiber_body(); }, this),
      threads_(std::size_t{warp_size} * max_warps),
      products_(std::size_t{warp_size} * max_warps) {}

void BlockRunner::begin(const Launch& launch) {
  launch_ = &launch;
  thread_count_ = launch.threads_per_block;
  warp_count_ = (thread_count_ + warp_size - 1) / warp_size;
  for (unsigned t = 0; t < thread_count_; ++t) {
    const unsigned x = launch.block.x, y = launch.block.y;
    threads_[t].index = {t % x, t / x % y, t / x / y};
  }
  running_ = &running_thread;
  running_->global = launch.memory->memory();
  running_->static_shared = shared_.static_part();
  running_->shared_guards = shared_.with_guards();
  running_->launch_start = launch.first_serial << serial_shift;
  running_->block_size = launch.block;
  running_->grid_size = launch.grid;
  running_->runner = this;
}

void BlockRunner::end() {
  deliver_late_sums();
  *running_ = RunningThread{};
  running_ = nullptr;
}

bool BlockRunner::run_block(std::uint64_t block_index) {
  start_block(block_index);
  run_ready();
  leave_sums();
  if (launch_->tracer != nullptr)
    launch_->tracer->end_block(static_cast<std::int64_t>(running_->fmas));
  if (diverged_) fibers_.discard_running();
  return !diverged_;
}

/// Runs threads until none of the block can go on.
void BlockRunner::run_ready() {
  make_current(0);  // any: the first pick replaces it
  if (!pick_next()) return;
  Thread& first = threads_[current_];
  if (first.fiber == nullptr) first.fiber = &fibers_.take();
  current_fiber_ = first.fiber;
  switch_fiber(main_, *current_fiber_);
}

void BlockRunner::start_block(std::uint64_t block_index) {
  const dim3 grid = launch_->grid;
  dynamic_ = shared_.dynamic(launch_->shared_bytes);
  running_->shared = dynamic_;
  running_->block = {static_cast<unsigned>(block_index % grid.x),
                     static_cast<unsigned>(block_index / grid.x % grid.y),
                     static_cast<unsigned>(block_index / grid.x / grid.y)};
  serial_stamp_ = (launch_->first_serial + block_index) << serial_shift;
  running_->block_start = serial_stamp_;
  earlier_serials_.clear();
  fenced_ = false;
  acquired_ = 0;
  random_ = launch_->seed ^ (block_index * 0x9e3779b97f4a7c15U);
  exited_count_ = 0;
  diverged_ = false;
  for (unsigned t = 0; t < thread_count_; ++t) {
    threads_[t].fiber = nullptr;
    threads_[t].has_waited = false;
    threads_[t].bulk_groups = 0;
    threads_[t].cluster_phase = 0;
  }
  for (AsyncCopyQueue& copies : async_copies_) copies.clear();
  mbarriers_.clear();
  named_barriers_ = {};
  for (Group& group : groups_) group.arrived = 0;
  copies_.clear();
  copy_arrivals_.clear();
  sums_.clear();
  copies_at_once_ = draw() >> 63 != 0;
  // A trace rebuilds the requests of a warp from lanes that follow each other.
  warps_overtake_ = draw() >> 63 != 0 && launch_->tracer == nullptr;
  for (unsigned t = 0; t < thread_count_; ++t) products_[t] = {};
  sleepers_.clear();
  for (unsigned w = 0; w < warp_count_; ++w) {
    const unsigned lanes = std::min(warp_size, thread_count_ - w * warp_size);
    warps_[w].ready = lanes == warp_size ? ~0U : (1U << lanes) - 1;
    warps_[w].exited = ~warps_[w].ready;  // lanes that do not exist count as gone
    warps_[w].at_barrier = 0;
    warps_[w].meetings = 0;
  }
  interval_ = 0;
  if (launch_->tracer != nullptr) start_trace();
  start_interval();
}

/// Hides the memory from the hooks, so that every access takes their last way out, which leads to
/// the tracer: the checks of other launches stay as they are.
void BlockRunner::start_trace() {
  running_->tracer = launch_->tracer;
  running_->fmas = 0;
  launch_->tracer->begin_block(launch_->memory->memory(), running_->shared, shared_.static_part());
  running_->shared.size_bytes = 0;
  running_->global.size_bytes = 0;
  running_->static_shared.size_bytes = 0;
  running_->shared_guards = {0, ~std::size_t{0}};
}

/// A new order of the warps, and stamps that say `after the barrier`.
void BlockRunner::start_interval() {
  for (unsigned w = 0; w < warp_count_; ++w) {
    warps_[w].epoch = 0;
    order_[w] = static_cast<std::uint8_t>(w);
  }
  for (unsigned w = warp_count_; w > 1; --w)
    std::swap(order_[w - 1], order_[static_cast<std::size_t>(draw() % w)]);
  order_position_ = 0;
  running_->interval_start = serial_stamp_ | Stamp{interval_} << interval_shift;
}

/// A warp that goes on from one warp operation to the next is overtaken at one in this many steps
/// of its lanes, which are about eight operations.
constexpr std::uint64_t overtaken_every = 256;

/// SplitMix64 [Steele, Lea, Flood, OOPSLA 2014]: cheap enough for every switch.
std::uint64_t BlockRunner::draw() {
  std::uint64_t z = random_ += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/// Moves to a thread that can advance. False when there is none: all have exited, or too few came
/// to a barrier.
bool BlockRunner::pick_next() {
  for (;;) {
    while (order_position_ < warp_count_) {
      const unsigned warp = order_[order_position_];
      const unsigned ready = warps_[warp].ready;
      if (ready == 0) {
        ++order_position_;
        continue;
      }
      const std::uint64_t drawn = draw();
      if (warps_overtake_ && drawn % overtaken_every == 0) {
        // The others first, though this warp waits for none of them.
        std::rotate(order_.begin() + order_position_, order_.begin() + order_position_ + 1,
                    order_.begin() + warp_count_);
        continue;
      }
      const int turn = static_cast<int>(drawn >> 59);
      const unsigned lane =
          static_cast<unsigned>(std::countr_zero(std::rotr(ready, turn)) + turn) % warp_size;
      warps_[warp].ready &= ~(1U << lane);
      make_current(warp * warp_size + lane);
      return true;
    }
    if (exited_count_ == thread_count_ || is_held_by_cluster() || !release_barrier()) return false;
  }
}

/// Begins an interval: what comes from now on comes after what was before.
void BlockRunner::next_interval() {
  if (interval_ ==
      last_interval) {  // the stamp's counter is full: the block goes on under one more serial
    interval_ = 0;
    const std::uint64_t serial = launch_->next_serial->fetch_add(1, std::memory_order_relaxed);
    earlier_serials_.push_back(serial_of(serial_stamp_));
    serial_stamp_ = serial << serial_shift;
  } else {
    ++interval_;
  }
  start_interval();
}

/// Lets all threads pass if every one of them waits at the same __syncthreads.
bool BlockRunner::release_barrier() {
  bool same = exited_count_ == 0;
  for (unsigned t = 0; same && t < thread_count_; ++t)
    same = (warps_[t / warp_size].at_barrier >> t % warp_size & 1U) != 0 &&
           threads_[t].line == threads_[0].line;
  if (!same) {
    report_divergence();
    return false;
  }
  for (unsigned w = 0; w < warp_count_; ++w) {
    warps_[w].ready = warps_[w].at_barrier;
    warps_[w].at_barrier = 0;
  }
  if (launch_->tracer != nullptr) launch_->tracer->barrier();
  barrier_result_ = barrier_count_;
  barrier_count_ = 0;
  next_interval();
  return true;
}

void BlockRunner::make_current(unsigned thread) {
  current_ = thread;
  running_->thread = threads_[thread].index;
  running_->stamp = running_->interval_start |
                    Stamp{warps_[thread / warp_size].epoch} << epoch_shift |
                    Stamp{thread} << thread_shift;
  const std::uint64_t ordered =
      threads_[thread].has_waited ? launch_->first_serial : launch_->predecessor_serial;
  running_->predecessor_start = ordered << serial_shift;
}

void BlockRunner::wait_for_predecessor() {
  threads_[current_].has_waited = true;
  running_->predecessor_start = running_->launch_start;
}

/// Runs threads from their start; a thread that waits keeps the fiber, one that exits passes it on.
void BlockRunner::fiber_body() {
  for (;;) {
    launch_->call.run(launch_->call.arguments);
    Warp& warp = warps_[current_ / warp_size];
    warp.exited |= 1U << current_ % warp_size;
    ++exited_count_;
    if (warp.meetings != 0) finish_meetings_without(warp);
    Fiber& self = *current_fiber_;
    if (!pick_next()) {  // ends run_block(); taken again, the fiber goes on with a thread of
                         // another block
      if (!diverged_) fibers_.give_back(self);
      switch_fiber(self, main_);
      continue;
    }
    Thread& next = threads_[current_];
    if (next.fiber == nullptr) {
      next.fiber = &self;
    } else {
      fibers_.give_back(self);
      current_fiber_ = next.fiber;
      switch_fiber(self, *next.fiber);
    }
  }
}

/// The current thread has put itself among the waiting; returns when it may go on.
void BlockRunner::wait() {
  const unsigned self = current_;
  if (!pick_next()) {  // the block is abandoned and this fiber never continues from here, or the
                       // block's turn is over and a later one goes on with this thread
    switch_fiber(*threads_[self].fiber, main_);
    return;
  }
  if (current_ == self) return;
  Thread& next = threads_[current_];
  if (next.fiber == nullptr) next.fiber = &fibers_.take();
  current_fiber_ = next.fiber;
  switch_fiber(*threads_[self].fiber, *next.fiber);
}

void BlockRunner::abandon(const ProcessorFault& fault) {
  report_fault(*running_, fault);
  diverged_ = true;
  switch_fiber(*current_fiber_, main_);
  __builtin_unreachable();
}

bool BlockRunner::is_on_stack(std::uintptr_t address) const {
  const auto bottom = reinterpret_cast<std::uintptr_t>(current_fiber_->stack_bottom);
  const std::uintptr_t guard = std::size_t{1} << 12;
  return address - (bottom - guard) < current_fiber_->stack_bytes + guard;
}

bool BlockRunner::is_own_serial(std::uint64_t serial) const {
  return std::find(earlier_serials_.begin(), earlier_serials_.end(), serial) !=
         earlier_serials_.end();
}

AsyncCopyQueue& BlockRunner::async_copies() {
  if (async_copies_.empty()) async_copies_.resize(threads_.size());
  return async_copies_[current_];
}

int BlockRunner::sync_block(int predicate, const char* file, int line) {
  Thread& thread = threads_[current_];
  thread.file = file;
  thread.line = line;
  warps_[current_ / warp_size].at_barrier |= 1U << current_ % warp_size;
  barrier_count_ += predicate != 0;
  wait();
  return barrier_result_;
}

}  // namespace attest::simt
