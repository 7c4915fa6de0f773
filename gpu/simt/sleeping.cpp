#include "gpu/simt/block_runner.hpp"

// Barriers that not all threads of a block come to: who waits sleeps until somebody wakes him.
namespace attest::simt {

void BlockRunner::sleep(const void* key, const char* file, int line) {
  threads_[current_].file = file;
  threads_[current_].line = line;
  sleepers_.push_back({key, current_});
  wait();
}

void BlockRunner::wake(const void* key) {
  std::erase_if(sleepers_, [&](const Sleeper& sleeper) {
    if (sleeper.key != key) return false;
    warps_[sleeper.thread / warp_size].ready |= 1U << sleeper.thread % warp_size;
    return true;
  });
  order_position_ = 0;  // a warp that was passed over may go on
}

void BlockRunner::init_mbarrier(const void* barrier, unsigned arrivals) {
  mbarriers_[barrier] = {arrivals, arrivals, 0, 0};
}

void BlockRunner::finish_phase(const void* barrier, Mbarrier& state) {
  if (state.pending != 0 || state.bytes != 0) return;
  state.pending = state.arrivals;
  ++state.phase;
  wake(barrier);
  // Whoever has waited comes after whoever has arrived. That everybody else does too is more than
  // the hardware says: a race may go unseen, but none is reported that cannot be.
  next_interval();
  make_current(current_);
}

void BlockRunner::arrive_mbarrier(const void* barrier, unsigned bytes) {
  Mbarrier& state = mbarriers_[barrier];
  state.bytes += bytes;
  --state.pending;
  finish_phase(barrier, state);
}

void BlockRunner::complete_bytes(const void* barrier, unsigned bytes) {
  Mbarrier& state = mbarriers_[barrier];
  state.bytes -= bytes;
  finish_phase(barrier, state);
}

void BlockRunner::wait_mbarrier(const void* barrier, unsigned parity, const char* file, int line) {
  // The phase before the current one has the other parity than it.
  while (mbarriers_[barrier].phase % 2 == parity) sleep(barrier, file, line);
}

void BlockRunner::meet_named_barrier(int id, unsigned threads, bool waits, const char* file,
                                     int line) {
  NamedBarrier& barrier = named_barriers_[static_cast<std::size_t>(id)];
  if (++barrier.arrived == threads) {
    barrier.arrived = 0;
    wake(&barrier);
    next_interval();
    make_current(current_);
  } else if (waits) {
    sleep(&barrier, file, line);
  }
}

void BlockRunner::multiply_group(const GroupProduct& mine, void (*work)(const GroupProduct* const*),
                                 const char* file, int line) {
  Group& group = groups_[current_ / 128];
  group.products[current_ % 128] = &mine;
  if (++group.arrived < group.products.size()) {
    sleep(&group, file, line);
    return;
  }
  group.arrived = 0;
  work(group.products.data());
  wake(&group);
}

}  // namespace attest::simt
