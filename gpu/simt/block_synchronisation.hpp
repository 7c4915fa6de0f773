#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace attest::simt {

/// Order between blocks of one launch, by fences and atomics. A block that passes a fence and then
/// does an atomic has published what it wrote; a block that does an atomic later has seen it ("the
/// last block adds up"). Which address the atomics touch is not asked, so a missing order may go
/// unseen, but an existing one is never denied.
class BlockSynchronisation {
 public:
  // Numbers are drawn before a block's operation when it publishes and after it when it sees: so
  // whenever one operation precedes another, the publisher's number is the smaller one, on any
  // number of OS threads.
  /// A block with this serial has passed a fence and is about to do an atomic operation.
  void publish(std::uint64_t serial) {
    const std::lock_guard lock(mutex_);
    published_[serial] = count_.fetch_add(1) + 1;
  }
  /// A block has done an atomic operation. Returns what is_ordered() wants to know of it.
  [[nodiscard]] std::uint64_t see() { return count_.fetch_add(1) + 1; }

  /// True if a block whose last atomic was `acquired` comes after the block with this serial. 0: it
  /// did none.
  [[nodiscard]] bool is_ordered(std::uint64_t serial, std::uint64_t acquired) const {
    if (acquired == 0) return false;
    const std::lock_guard lock(mutex_);
    const auto found = published_.find(serial);
    return found != published_.end() && found->second < acquired;
  }

 private:
  std::atomic<std::uint64_t> count_ = 0;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> published_;
};

}  // namespace attest::simt
