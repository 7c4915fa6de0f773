#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/run/device.hpp"
#include "gpu/simt/access_check.hpp"
#include "gpu/simt/processor_fault.hpp"
#include "gpu/simt/running_thread.hpp"
#include "gpu/simt/shadow.hpp"

// Sentences for what went wrong. Each is made once for a kind and place in the program.

namespace attest::simt {
/// Findings of a device's launches, a few per kind and line. Safe to add to from several OS
/// threads.
class FindingLog {
 public:
  static constexpr std::size_t limit = 32;

  /// True the first time for this kind and place, until the log is full or taken: only then is a
  /// message worth making.
  [[nodiscard]] bool is_new(const char* kind, ProgramPoint point);
  void add(const char* kind, std::string message);
  [[nodiscard]] std::vector<Finding> take();

 private:
  struct Seen {
    std::string kind;
    ProgramPoint point;
  };
  std::mutex mutex_;
  std::vector<Seen> seen_;
  std::vector<Finding> findings_;
};

/// The part of an access that lies in one word.
struct AccessedWord {
  Region region = Region::global;
  std::uintptr_t offset = 0;  ///< of the word in its region
  unsigned bytes = 0;         ///< a bit for each byte touched
  Access access = Access::read;
  ProgramPoint point = 0;
  const ShadowedMemory* of_block = nullptr;  ///< in a cluster: the shared memory that holds it
};

/// True if all bytes belong to the buffer's accessible part. Global memory only.
[[nodiscard]] bool is_accessible(const RunningThread& thread, const AccessedWord& word);

void report_out_of_bounds(const RunningThread& thread, const AccessedWord& word);
void report_unwritten(const RunningThread& thread, const AccessedWord& word);
/// The launch before wrote or read the word, and the thread has not waited for its end.
void report_before_predecessor_ended(const RunningThread& thread, const AccessedWord& word);
/// `other` is the stamp of the earlier access, `verb` what it did, `readers` its tag when it was a
/// read.
void report_race(const RunningThread& thread, const AccessedWord& word, const char* verb,
                 Stamp other, Stamp readers, ProgramPoint other_point);

/// Reports what the processor refused: an access of what is no memory at all, or a division by
/// zero.
void report_fault(const RunningThread& thread, const ProcessorFault& fault);

/// `(1, 0, 2)`.
[[nodiscard]] std::string format_index(uint3 index);

}  // namespace attest::simt
