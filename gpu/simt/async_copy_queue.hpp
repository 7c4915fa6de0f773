#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/simt/shadow.hpp"

namespace attest::simt {

/// The asynchronous copies of one thread that may still fly. On a GPU a copy arrives at some time
/// between its start and the wait that guarantees it; here it arrives at that wait and not before,
/// and until then its target counts as unwritten, so that whoever reads too early is found.
class AsyncCopyQueue {
 public:
  /// Starts a copy of `source_bytes` from global to shared memory, zeros after them up to `bytes`.
  /// Checked here as a read and a write of the running thread, since the hardware may do both at
  /// once.
  void start(void* shared, const void* global, std::size_t bytes, std::size_t source_bytes,
             ProgramPoint point);
  /// Closes a group of the copies started since the last one.
  void commit();
  /// Lets arrive what all but the `newest` last groups hold: writes of the running thread.
  void wait(unsigned newest);
  /// Copies that were started since the block began.
  [[nodiscard]] std::uint64_t started() const { return started_; }
  /// Lets arrive those of the first `count` that still fly: writes of the running thread, which may
  /// be another than who started them.
  void let_arrive(std::uint64_t count);
  void clear();

 private:
  struct Copy {
    std::byte* shared;
    const std::byte* global;
    std::size_t bytes, source_bytes;
    ProgramPoint point;
    unsigned group;
    std::uint64_t number;  ///< of the block's copies that the thread started
  };
  static void deliver(const Copy& copy);
  void drop(std::size_t arrived);

  std::vector<Copy> copies_;
  unsigned committed_ = 0;  ///< groups so far
  std::uint64_t started_ = 0;
};

}  // namespace attest::simt
