#include "gpu/simt/async_copy_queue.hpp"

#include <cstring>

#include "gpu/simt/access_check.hpp"

namespace attest::simt {

void AsyncCopyQueue::start(void* shared, const void* global, std::size_t bytes,
                           std::size_t source_bytes, ProgramPoint point) {
  const auto to = reinterpret_cast<std::uintptr_t>(shared);
  const auto from = reinterpret_cast<std::uintptr_t>(global);
  if (to % bytes != 0) return report_misaligned(to, bytes, Access::write, point);
  if (from % bytes != 0) return report_misaligned(from, bytes, Access::read, point);
  if (source_bytes > 0) check_range(from, source_bytes, Access::read, point);
  check_range(to, bytes, Access::write, point);
  const std::uint64_t number = started_++;
  // A traced launch counts the copy once, above, and checks nothing.
  const bool is_traced = running_thread.tracer != nullptr;
  if (!is_traced && !forget_shared(to, bytes)) return;  // out of bounds: found by the check
  std::memset(shared, 0xff, bytes);                     // a NaN in every floating-point format
  copies_.push_back({static_cast<std::byte*>(shared), static_cast<const std::byte*>(global), bytes,
                     source_bytes, point, committed_, number});
}

void AsyncCopyQueue::commit() {
  ++committed_;
}

void AsyncCopyQueue::wait(unsigned newest) {
  std::size_t arrived = 0;
  while (arrived < copies_.size() && copies_[arrived].group + newest < committed_)
    deliver(copies_[arrived++]);
  drop(arrived);
}

void AsyncCopyQueue::let_arrive(std::uint64_t count) {
  std::size_t arrived = 0;
  while (arrived < copies_.size() && copies_[arrived].number < count) deliver(copies_[arrived++]);
  drop(arrived);
}

void AsyncCopyQueue::drop(std::size_t arrived) {
  copies_.erase(copies_.begin(), copies_.begin() + static_cast<std::ptrdiff_t>(arrived));
}

void AsyncCopyQueue::clear() {
  copies_.clear();
  committed_ = 0;
  started_ = 0;
}

void AsyncCopyQueue::deliver(const Copy& copy) {
  if (running_thread.tracer == nullptr)
    check_range(reinterpret_cast<std::uintptr_t>(copy.shared), copy.bytes, Access::write,
                copy.point);
  std::memcpy(copy.shared, copy.global, copy.source_bytes);
  std::memset(copy.shared + copy.source_bytes, 0, copy.bytes - copy.source_bytes);
}

}  // namespace attest::simt
