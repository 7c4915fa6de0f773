#include "gpu/simt/finding_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <utility>

#include "gpu/simt/block_runner.hpp"
#include "gpu/simt/global_memory.hpp"
#include "gpu/simt/symbols.hpp"

namespace attest::simt {
namespace {

/// `buffer k, byte 132` counted from the first byte that belongs to the kernel.
std::string describe_place(const RunningThread& thread, const AccessedWord& word) {
  const auto first = static_cast<std::uintptr_t>(std::countr_zero(word.bytes));
  const std::uintptr_t offset = word.offset + first;
  if (word.region == Region::shared)
    return fmt::format("shared memory, byte {} of {}", static_cast<std::ptrdiff_t>(offset),
                       thread.runner->launch().shared_bytes);
  if (word.region == Region::static_shared) return "a static __shared__ variable";
  const std::uintptr_t address = thread.global.base + offset;
  std::uintptr_t start = 0;
  const GlobalMemory::Buffer* buffer = thread.runner->launch().memory->find_nearest(address, start);
  if (buffer == nullptr) return fmt::format("global address {:#x}", address);
  const auto [begin, end] = buffer->accessible();
  const auto position =
      static_cast<std::ptrdiff_t>(address - start) - static_cast<std::ptrdiff_t>(begin);
  return fmt::format("buffer {}, byte {} of {}", buffer->name, position, end - begin);
}

std::string where(const RunningThread& thread) {
  return fmt::format("{}, block {}, thread {}", function_name(thread.runner->launch().call.address),
                     format_index(thread.block), format_index(thread.thread));
}

const char* verb_of(Access access) {
  return access == Access::read ? "reads" : access == Access::write ? "writes" : "updates";
}

void report(const RunningThread& thread, const char* kind, const AccessedWord& word,
            const std::string& rest) {
  thread.runner->launch().findings->add(
      kind, fmt::format("{} {} {} at {}{}", where(thread), verb_of(word.access),
                        describe_place(thread, word), source_line(word.point), rest));
}

bool is_new(const RunningThread& thread, const char* kind, ProgramPoint point) {
  return thread.runner->launch().findings->is_new(kind, point);
}

uint3 index_in(std::uint64_t linear, dim3 size) {
  return {static_cast<unsigned>(linear % size.x), static_cast<unsigned>(linear / size.x % size.y),
          static_cast<unsigned>(linear / size.x / size.y)};
}

}  // namespace

bool FindingLog::is_new(const char* kind, ProgramPoint point) {
  const std::lock_guard lock(mutex_);
  if (seen_.size() >= limit) return false;
  const bool known = std::any_of(seen_.begin(), seen_.end(), [&](const Seen& seen) {
    return seen.point == point && seen.kind == kind;
  });
  if (!known) seen_.push_back({kind, point});
  return !known;
}

void FindingLog::add(const char* kind, std::string message) {
  const std::lock_guard lock(mutex_);
  findings_.push_back({kind, std::move(message)});
}

std::vector<Finding> FindingLog::take() {
  const std::lock_guard lock(mutex_);
  seen_.clear();
  return std::exchange(findings_, {});
}

std::string format_index(uint3 index) {
  return fmt::format("({}, {}, {})", index.x, index.y, index.z);
}

bool is_accessible(const RunningThread& thread, const AccessedWord& word) {
  const std::uintptr_t address = thread.global.base + word.offset;
  std::uintptr_t start = 0;
  const GlobalMemory::Buffer* buffer = thread.runner->launch().memory->find(address, start);
  if (buffer == nullptr) return false;
  for (unsigned byte = 0; byte < 4; ++byte) {
    if ((word.bytes >> byte & 1U) != 0 && !buffer->is_accessible(address + byte - start))
      return false;
  }
  return true;
}

void report_out_of_bounds(const RunningThread& thread, const AccessedWord& word) {
  if (is_new(thread, "out of bounds", word.point)) report(thread, "out of bounds", word, "");
}

void report_unwritten(const RunningThread& thread, const AccessedWord& word) {
  if (is_new(thread, "uninitialised read", word.point))
    report(thread, "uninitialised read", word,
           word.region != Region::global && thread.runner->has_async_copies()
               ? ", which nothing has written, or no wait has brought yet"
               : ", which nothing has written");
}

void report_before_predecessor_ended(const RunningThread& thread, const AccessedWord& word) {
  if (is_new(thread, "data race", word.point))
    report(thread, "data race", word,
           ", before griddepcontrol.wait: the launch before this one may still use it");
}

void report_misaligned(std::uintptr_t address, std::size_t size, Access access,
                       ProgramPoint point) {
  const RunningThread& thread = running_thread;
  if (is_new(thread, "misaligned access", point))
    thread.runner->launch().findings->add(
        "misaligned access",
        fmt::format("{} {} {} bytes at {}: the address is {} past a multiple of {}", where(thread),
                    verb_of(access), size, source_line(point), address % size, size));
}

void report_fault(const RunningThread& thread, const ProcessorFault& fault) {
  const bool is_division = fault.signal == SIGFPE;
  const char* const kind = is_division ? "division by zero" : "out of bounds";
  if (!is_new(thread, kind, fault.point)) return;
  const std::string what = is_division ? "divides by zero"
                                       : fmt::format("{} address {:#x}, which is no memory,",
                                                     verb_of(fault.access), fault.address);
  thread.runner->launch().findings->add(
      kind, fmt::format("{} {} at {}; the launch was abandoned", where(thread), what,
                        source_line(fault.point)));
}

void report_race(const RunningThread& thread, const AccessedWord& word, const char* verb,
                 Stamp other, Stamp readers, ProgramPoint other_point) {
  if (!is_new(thread, "data race", word.point)) return;
  const Launch& launch = thread.runner->launch();
  const bool same_block =
      serial_of(other) == serial_of(thread.stamp) || thread.runner->is_own_serial(serial_of(other));
  // With many readers the stamp is that of the first, which may be the writer itself.
  const bool is_self = same_block && thread_of(other) == thread_of(thread.stamp);
  std::string who = is_self && readers != one_thread
                        ? "another thread"
                        : "thread " + format_index(index_in(thread_of(other), launch.block));
  if (!same_block) {
    const std::uint64_t block = serial_of(other) - launch.first_serial;
    who += block < launch.block_count ? " of block " + format_index(index_in(block, launch.grid))
                                      : std::string(" of another block");
    if (readers == many_blocks) who += " and others";
  }
  report(thread, "data race", word,
         fmt::format(" while {} {} at {}; {}", who, verb, source_line(other_point),
                     same_block ? "no barrier lies between" : "nothing orders the two blocks"));
}

}  // namespace attest::simt
