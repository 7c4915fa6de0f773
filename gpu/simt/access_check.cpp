#include "gpu/simt/access_check.hpp"

#include <algorithm>

#include "gpu/simt/block_cluster.hpp"
#include "gpu/simt/block_runner.hpp"
#include "gpu/simt/finding_log.hpp"
#include "gpu/simt/global_memory.hpp"
#include "gpu/simt/launch_tracer.hpp"
#include "gpu/simt/quick_check.hpp"

namespace attest::simt {
namespace {

const ShadowedMemory& memory_of(const RunningThread& thread, Region region) {
  switch (region) {
    case Region::shared:
      return thread.shared;
    case Region::static_shared:
      return thread.static_shared;
    default:
      return thread.global;
  }
}

/// One access against what its word remembers.
class WordCheck {
 public:
  WordCheck(const RunningThread& thread, const AccessedWord& word)
      : thread_(thread),
        word_(word),
        memory_(word.of_block != nullptr ? *word.of_block : memory_of(thread, word.region)),
        cell_(memory_.cells[word.offset / 4]),
        write_(load(cell_.write)),
        read_(load(cell_.read)) {}

  void run() {
    if (word_.region == Region::global && serial_of(write_) == 0) {
      if (!thread_.runner->launch().memory->holds_word(memory_.base + word_.offset)) {
        check_partly_accessible();
        return;
      }
      write_ = unwritten;
    }
    if (word_.access != Access::write && (word_.bytes & ~written()) != 0)
      report_unwritten(thread_, word_);
    check_races();
    if (word_.access == Access::read)
      remember_read();
    else
      remember_write();
  }

 private:
  [[nodiscard]] std::uint8_t& written_bytes() const {
    return memory_.written_bytes[word_.offset / 4];
  }
  [[nodiscard]] bool is_own(Stamp s) const {
    return serial_of(s) == serial_of(thread_.stamp) || thread_.runner->is_own_serial(serial_of(s));
  }
  [[nodiscard]] bool is_from_this_launch(Stamp s) const {
    return word_.region == Region::global ? (s & ~incomplete) >= thread_.launch_start
                                          : is_own(s) || is_of_cluster(s);
  }
  [[nodiscard]] bool is_of_cluster(Stamp s) const {
    return thread_.is_in_cluster && thread_.runner->cluster()->has(serial_of(s));
  }
  [[nodiscard]] bool is_before_cluster_barrier(Stamp s) const {
    return is_of_cluster(s) && thread_.runner->cluster()->is_before_barrier(s);
  }

  /// Bytes of the word that hold a value.
  [[nodiscard]] unsigned written() const {
    if (word_.region != Region::global && !is_own(write_) && !is_of_cluster(write_)) return 0;
    if ((write_ & incomplete) != 0) return written_bytes();
    return serial_of(write_) == serial_of(unwritten) ? 0 : 15;
  }

  /// A word at the edge of a buffer, or beyond: the buffer's own record decides. Races are not seen
  /// here.
  void check_partly_accessible() {
    if (!is_accessible(thread_, word_)) {
      report_out_of_bounds(thread_, word_);
      return;
    }
    std::uint8_t& bytes = written_bytes();
    if (word_.access != Access::write && (word_.bytes & ~bytes) != 0)
      report_unwritten(thread_, word_);
    if (word_.access != Access::read) bytes |= static_cast<std::uint8_t>(word_.bytes);
  }

  /// True if something orders an access that `s` stands for before this one. `by_other` says that
  /// threads other than the one in the stamp made it too.
  [[nodiscard]] bool is_ordered(Stamp s, Stamp readers) const {
    if (!is_from_this_launch(s) || is_before_cluster_barrier(s)) return true;
    if (readers == many_blocks) return false;
    if (!is_own(s))
      return thread_.runner->launch().order.is_ordered(serial_of(s), thread_.runner->acquired());
    if (interval_of(s) != interval_of(thread_.stamp)) return true;
    if (readers == warps_of_a_block) return false;
    if (readers == one_thread && thread_of(s) == thread_of(thread_.stamp)) return true;
    if (warp_of(s) != warp_of(thread_.stamp)) return false;
    // __syncwarp in between, or too many of them to tell.
    return epoch_of(s) < epoch_of(thread_.stamp) || epoch_of(s) == last_epoch;
  }

  /// True if the access was made by the launch before, which may still run.
  [[nodiscard]] bool is_from_predecessor(Stamp s) const {
    s &= ~incomplete;
    return word_.region == Region::global && s >= thread_.predecessor_start &&
           s < thread_.launch_start && (bytes_of(s) & word_.bytes) != 0;
  }

  void check_races() {
    const bool writes = word_.access == Access::write;
    if (is_from_predecessor(write_) || (writes && is_from_predecessor(read_))) {
      report_before_predecessor_ended(thread_, word_);
      return;
    }
    const bool plain = (write_ & tag_mask) == plain_write;
    if ((bytes_of(write_) & word_.bytes) != 0 && (plain || writes) &&
        !is_ordered(write_, one_thread)) {
      report_race(thread_, word_, plain ? "wrote it" : "updated it atomically", write_, one_thread,
                  cell_.write_point);
      return;
    }
    if (writes && (bytes_of(read_) & word_.bytes) != 0 && !is_ordered(read_, read_ & tag_mask))
      report_race(thread_, word_, "read it", read_, read_ & tag_mask, cell_.read_point);
  }

  void remember_write() {
    Stamp stamp = thread_.stamp | Stamp{word_.bytes} << bytes_shift |
                  (word_.access == Access::atomic ? atomic_write : plain_write);
    const unsigned bytes = written() | word_.bytes;
    if (bytes != 15) {
      written_bytes() = static_cast<std::uint8_t>(bytes);
      stamp |= incomplete;
    }
    record_write(cell_, stamp, word_.point);
  }

  /// One stamp stands for all readers: the first one stays, the tag says how far others are from
  /// it. Reads of other bytes than those replace it: a race may then go unseen, but none is made
  /// up.
  void remember_read() {
    const Stamp mine = thread_.stamp | Stamp{word_.bytes} << bytes_shift, tag = read_ & tag_mask;
    if (!is_from_this_launch(read_) || bytes_of(read_) != word_.bytes) return replace(mine);
    if (word_.region == Region::shared && is_before_cluster_barrier(read_)) return replace(mine);
    if (tag == many_blocks) return;
    if (!is_own(read_)) return widen(many_blocks);
    if (interval_of(read_) != interval_of(mine)) return replace(mine);
    if (tag == warps_of_a_block) return;
    if (warp_of(read_) != warp_of(mine)) return widen(warps_of_a_block);
    if (epoch_of(read_) != epoch_of(mine)) return replace(mine);
    if (thread_of(read_) != thread_of(mine)) widen(lanes_of_a_warp);
  }
  void replace(Stamp stamp) { record_read(cell_, stamp, word_.point); }
  void widen(Stamp tag) { store(cell_.read, (read_ & ~tag_mask) | tag); }

  const RunningThread& thread_;
  const AccessedWord& word_;
  const ShadowedMemory& memory_;
  Cell& cell_;
  Stamp write_, read_;
};

/// Finds the place of an address; false: not in device memory.
bool locate(const RunningThread& thread, std::uintptr_t address, AccessedWord& word) {
  const auto within = [&](const ShadowedMemory& memory) {
    word.offset = address - memory.base;
    return word.offset < memory.size_bytes;
  };
  word.region = Region::shared;
  if (within(thread.shared)) return true;
  word.region = Region::global;
  if (within(thread.global)) return true;
  if (thread.is_in_cluster) {
    word.of_block = thread.runner->cluster()->shared_at(address);
    if (word.of_block != nullptr) {
      word.region = Region::shared;
      return within(*word.of_block);
    }
  }
  word.region = Region::static_shared;
  return within(thread.static_shared);
}

/// Checks a range that lies in one memory; not for atomic operations.
template <Region region>
void check_words(const RunningThread& thread, const ShadowedMemory& memory, std::uintptr_t begin,
                 std::size_t size, Access access, ProgramPoint point) {
  for (std::uintptr_t at = begin & ~std::uintptr_t{3}, end = begin + size; at < end; at += 4) {
    unsigned bytes = 15;
    if (at < begin) bytes &= 15U << (begin - at);
    if (end - at < 4) bytes &= 15U >> (4 - (end - at));
    const Stamp in_place = Stamp{bytes} << bytes_shift;
    Cell& cell = memory.cells[at / 4];
    const bool is_fine = access == Access::read
                             ? read_quickly<region>(thread, cell, in_place, point)
                             : write_quickly<region>(thread, cell, in_place, point);
    if (!is_fine) check_word(thread, region, at, bytes, access, point);
  }
}

/// True if the address is beside the shared memory of the block, or of a block of its cluster.
bool is_in_guards(const RunningThread& thread, std::uintptr_t address) {
  if (thread.is_in_cluster) return thread.runner->cluster()->is_in_guards(address);
  return address - thread.shared_guards.base < thread.shared_guards.size_bytes;
}

}  // namespace

void check_word(const RunningThread& thread, Region region, std::uintptr_t offset, unsigned bytes,
                Access access, ProgramPoint point) {
  const AccessedWord word{region, offset, bytes, access, point};
  WordCheck(thread, word).run();
}

void check_range(std::uintptr_t address, std::size_t size, Access access, ProgramPoint point) {
  const RunningThread& thread = running_thread;
  if (thread.runner == nullptr) return;
  if (thread.tracer != nullptr) {
    const AccessKind kind = access == Access::read    ? AccessKind::read
                            : access == Access::write ? AccessKind::write
                                                      : AccessKind::atomic;
    thread.tracer->access(thread_of(thread.stamp), address, size, kind, point);
    return;
  }
  const auto holds_all = [&](const ShadowedMemory& memory) {
    const std::uintptr_t offset = address - memory.base;
    return offset < memory.size_bytes && size <= memory.size_bytes - offset;
  };
  if (access != Access::atomic && holds_all(thread.shared))
    return check_words<Region::shared>(thread, thread.shared, address - thread.shared.base, size,
                                       access, point);
  if (access != Access::atomic && holds_all(thread.global))
    return check_words<Region::global>(thread, thread.global, address - thread.global.base, size,
                                       access, point);
  for (const std::uintptr_t end = address + size; address < end;) {
    const std::uintptr_t next = std::min(end, (address / 4 + 1) * 4);
    AccessedWord word{Region::shared, 0, 0, access, point};
    word.bytes = ((1U << (next - address)) - 1) << address % 4;
    if (locate(thread, address, word)) {
      word.offset &= ~std::uintptr_t{3};
      WordCheck(thread, word).run();
    } else if (is_in_guards(thread, address)) {
      word.offset = address - thread.shared.base;
      report_out_of_bounds(thread, word);
    }
    address = next;
  }
}

bool forget_shared(std::uintptr_t address, std::size_t size) {
  const RunningThread& thread = running_thread;
  if (thread.runner == nullptr) return false;
  const ShadowedMemory& shared = thread.runner->dynamic_shared();
  for (const ShadowedMemory* memory : {&shared, &thread.static_shared}) {
    const std::uintptr_t offset = address - memory->base;
    if (offset >= memory->size_bytes || memory->size_bytes - offset < size) continue;
    for (std::uintptr_t at = offset; at < offset + size; at += 4) {
      memory->written_bytes[at / 4] = 0;
      store(memory->cells[at / 4].write, thread.stamp | all_bytes | plain_write | incomplete);
    }
    return true;
  }
  return false;
}

void before_atomic(const void* address, std::size_t size) noexcept {
  if (running_thread.runner == nullptr) return;
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  const ProgramPoint point = point_of(__builtin_return_address(0));
  if (a % size != 0) report_misaligned(a, size, Access::atomic, point);
  check_range(a, size, Access::atomic, point);
  running_thread.runner->before_atomic();
}

void after_atomic() noexcept {
  if (running_thread.runner != nullptr) running_thread.runner->after_atomic();
}

}  // namespace attest::simt
