#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

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

/// The copies that complete on the barrier arrive. False when there are none.
bool BlockRunner::deliver_copies(const void* barrier) {
  std::vector<BulkCopy> arriving;
  std::erase_if(copies_, [&](const BulkCopy& copy) {
    if (copy.barrier != barrier) return false;
    arriving.push_back(copy);
    return true;
  });
  if (arriving.empty()) return false;
  // The thread that waits writes them here; they come after who asked for them.
  next_interval();
  make_current(current_);
  Mbarrier& state = mbarriers_[barrier];
  for (const BulkCopy& copy : arriving) {
    const bool has_waited = std::exchange(threads_[current_].has_waited, copy.has_waited);
    make_current(current_);
    deliver(copy);
    threads_[current_].has_waited = has_waited;
    make_current(current_);
    state.bytes -= static_cast<std::int64_t>(copy.bytes);
  }
  finish_phase(barrier, state);
  return true;
}

void BlockRunner::add_copy(const BulkCopy& copy) {
  copies_.push_back(copy);
  copies_.back().has_waited = threads_[current_].has_waited;
  // A copy that comes at once shows who does not look before the next, one that comes late who does
  // not wait.
  if (is_awaited(copy.barrier) || copies_at_once_) (void)deliver_copies(copy.barrier);
}

bool BlockRunner::is_awaited(const void* barrier) const {
  return std::ranges::any_of(sleepers_,
                             [&](const Sleeper& sleeper) { return sleeper.key == barrier; });
}

void BlockRunner::arrive_after_copies(const void* barrier) {
  copy_arrivals_.push_back({barrier, current_, async_copies().started()});
  if (is_awaited(barrier) || copies_at_once_) (void)deliver_arrivals(barrier);
}

/// Arrivals at the barrier that wait for copies come, and the copies before them. False when there
/// are none.
bool BlockRunner::deliver_arrivals(const void* barrier) {
  std::vector<CopyArrival> arriving;
  std::erase_if(copy_arrivals_, [&](const CopyArrival& arrival) {
    if (arrival.barrier != barrier) return false;
    arriving.push_back(arrival);
    return true;
  });
  if (arriving.empty()) return false;
  // As in deliver_copies().
  next_interval();
  make_current(current_);
  Mbarrier& state = mbarriers_[barrier];
  for (const CopyArrival& arrival : arriving) {
    async_copies_[arrival.thread].let_arrive(arrival.copies);
    --state.pending;
    finish_phase(barrier, state);
  }
  return true;
}

void BlockRunner::add_sum(BulkSum sum) {
  sum.thread = current_;
  if (copies_at_once_) {
    read_terms(sum);
    add_terms(sum);
  } else {
    sums_.push_back(std::move(sum));
  }
}

void BlockRunner::commit_sums() {
  const unsigned group = ++threads_[current_].bulk_groups;
  for (BulkSum& sum : sums_) {
    if (sum.thread == current_ && sum.group == 0) sum.group = group;
  }
}

void BlockRunner::wait_for_sums(bool until_read, unsigned newest) {
  std::erase_if(sums_, [&](BulkSum& sum) {
    if (sum.thread != current_ || sum.group == 0) return false;
    if (sum.group + newest > threads_[current_].bulk_groups) return false;
    if (!sum.is_read) read_terms(sum);
    if (!until_read) add_terms(sum);
    return !until_read;
  });
}

/// Leaves sums that the block has not waited for to the end of the launch.
void BlockRunner::leave_sums() {
  for (BulkSum& sum : sums_) {
    // Its shared memory is gone: NaN, or a number as large.
    constexpr auto nan_bits = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::quiet_NaN());
    if (!sum.is_read) sum.terms.assign(sum.count, nan_bits);
    late_sums_.push_back(std::move(sum));
  }
  sums_.clear();
}

void BlockRunner::deliver_late_sums() {
  for (const BulkSum& sum : late_sums_) add_terms(sum);
  late_sums_.clear();
}

void BlockRunner::wait_mbarrier(const void* barrier, unsigned parity, const char* file, int line) {
  // The phase before the current one has the other parity than it.
  while (mbarriers_[barrier].phase % 2 == parity) {
    // Both: of one barrier they end a phase together.
    const bool has_come = deliver_copies(barrier);
    if (!deliver_arrivals(barrier) && !has_come) sleep(barrier, file, line);
  }
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

/// Place where the product adds: what the thread's earlier products into the same d have left, or d
/// itself if none is under way. d then holds NaN.
float* BlockRunner::result_of(unsigned thread, const GroupProduct& product) {
  Products& products = products_[thread];
  for (Products::Pending& pending : products.pending) {
    if (pending.d != product.d) continue;
    pending.group = products.committed;
    return pending.result.data();
  }
  const int count = product.n / 2;
  products.pending.push_back({product.d, {product.d, product.d + count}, products.committed});
  std::fill_n(product.d, count, std::numeric_limits<float>::quiet_NaN());
  return products.pending.back().result.data();
}

void BlockRunner::multiply_group(const GroupProduct& mine,
                                 void (*work)(const GroupProduct* const*, float* const*),
                                 const char* file, int line) {
  Group& group = groups_[current_ / 128];
  group.products[current_ % 128] = &mine;
  if (++group.arrived < group.products.size()) {
    sleep(&group, file, line);
    return;
  }
  group.arrived = 0;
  std::array<float*, 128> results;
  for (unsigned t = 0; t < results.size(); ++t) {
    results[t] = result_of(current_ / 128 * 128 + t, *group.products[t]);
  }
  work(group.products.data(), results.data());
  wake(&group);
}

void BlockRunner::wait_for_products(unsigned newest) {
  Products& products = products_[current_];
  std::erase_if(products.pending, [&](const Products::Pending& pending) {
    if (pending.group + newest >= products.committed) return false;
    std::copy(pending.result.begin(), pending.result.end(), pending.d);
    return true;
  });
}

}  // namespace attest::simt
