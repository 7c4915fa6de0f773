#pragma once

#include <string>

#include "gpu/simt/access_check.hpp"
#include "gpu/simt/running_thread.hpp"

// Sentences for what went wrong. Each is made once for a kind and place in the program.
namespace attest::simt {

/// The part of an access that lies in one word.
struct AccessedWord {
  Region region = Region::global;
  std::uintptr_t offset = 0;  ///< of the word in its region
  unsigned bytes = 0;         ///< a bit for each byte touched
  Access access = Access::read;
  ProgramPoint point = 0;
};

/// Whether all bytes belong to the buffer's accessible part. Global memory only.
[[nodiscard]] bool is_accessible(const RunningThread& thread, const AccessedWord& word);

void report_out_of_bounds(const RunningThread& thread, const AccessedWord& word);
void report_unwritten(const RunningThread& thread, const AccessedWord& word);
/// `other` is the stamp of the earlier access, `verb` what it did, `readers` its tag when it was a
/// read.
void report_race(const RunningThread& thread, const AccessedWord& word, const char* verb,
                 Stamp other, Stamp readers, ProgramPoint other_point);

/// `(1, 0, 2)`.
[[nodiscard]] std::string format_index(uint3 index);

}  // namespace attest::simt
