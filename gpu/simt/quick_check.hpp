#pragma once

#include "gpu/simt/access_check.hpp"
#include "gpu/simt/running_thread.hpp"
#include "gpu/simt/shadow.hpp"

// The check of an access that is plainly fine: two loads, a few comparisons and at most one store
// of a stamp, the same that check_word() would leave. Everything else is for check_word().
namespace attest::simt {

inline constexpr Stamp who_and_when = ~(epoch_mask | all_bytes | tag_mask);

inline constexpr Stamp lane_mask = Stamp{31} << thread_shift, warp_mask = thread_mask & ~lane_mask;

/// True if this block wrote it before its last barrier: serials agree, intervals do not, no byte is
/// missing.
inline bool before_barrier(Stamp s, Stamp now) {
  return ((s ^ now) >> interval_shift) - 1 < last_interval;
}
inline bool same_thread(Stamp s, Stamp now) {
  return ((s ^ now) & who_and_when) == 0;
}
inline bool same_interval(Stamp s, Stamp now) {
  return ((s ^ now) & ~incomplete) >> interval_shift == 0;
}

/// `bytes` is in stamp position. True when the access is fine and recorded.
template <Region region>
[[gnu::always_inline]] inline bool read_quickly(const RunningThread& t, Cell& cell, Stamp bytes,
                                                ProgramPoint point) {
  const Stamp now = t.stamp, w = load(cell.write);
  bool fine = before_barrier(w, now) || same_thread(w, now);
  if constexpr (region == Region::global)
    fine = w - from_host < t.predecessor_start - from_host || fine;
  if (!fine) [[unlikely]]
    return false;
  const Stamp r = load(cell.read), difference = r ^ (now | bytes);
  if ((difference & ~(lane_mask | tag_mask)) ==
      0) {  // a lane of the same warp was the last one to note here
    if ((difference & lane_mask) != 0 && (r & tag_mask) == one_thread)
      store(cell.read, r | lanes_of_a_warp);
    return true;
  }
  const bool outdated = region == Region::global ? r < t.launch_start : !same_interval(r, now);
  if (outdated) {
    record_read(cell, now | bytes, point);
    return true;
  }
  if constexpr (region == Region::global) {
    if ((r & (all_bytes | tag_mask)) == (bytes | many_blocks)) return true;
    if (before_barrier(r, now) && (r & tag_mask) != many_blocks) {
      record_read(cell, now | bytes, point);
      return true;
    }
    return false;
  } else {
    if ((difference & all_bytes) != 0) return false;
    if ((r & tag_mask) == warps_of_a_block) return true;
    if ((difference & warp_mask) == 0) return false;
    store(cell.read, (r & ~tag_mask) | warps_of_a_block);
    return true;
  }
}

template <Region region>
[[gnu::always_inline]] inline bool write_quickly(const RunningThread& t, Cell& cell, Stamp bytes,
                                                 ProgramPoint point) {
  const Stamp now = t.stamp, w = load(cell.write), r = load(cell.read);
  const bool read_fine_here = (same_thread(r, now) && (r & tag_mask) == one_thread);
  bool fine = false;
  if constexpr (region == Region::global) {
    // Bytes that nobody wrote before matter when this write leaves some of them so.
    const Stamp oldest = bytes == all_bytes ? unwritten : from_host;
    const bool write_fine =
        w - oldest < t.predecessor_start - oldest || before_barrier(w, now) || same_thread(w, now);
    const bool read_fine = r < t.predecessor_start || read_fine_here ||
                           (before_barrier(r, now) && (r & tag_mask) != many_blocks);
    fine = write_fine && read_fine;
  } else {
    const bool write_fine = bytes == all_bytes
                                ? !same_interval(w, now) || same_thread(w & ~incomplete, now)
                                : before_barrier(w, now) || same_thread(w, now);
    fine = write_fine && (!same_interval(r, now) || read_fine_here);
  }
  if (!fine) [[unlikely]]
    return false;
  record_write(cell, now | bytes, point);
  return true;
}

}  // namespace attest::simt
