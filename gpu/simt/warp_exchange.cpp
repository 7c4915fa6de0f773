#include <array>
#include <bit>

#include "gpu/simt/block_runner.hpp"
#include "gpu/simt/finding_log.hpp"
#include "gpu/simt/launch_tracer.hpp"

// Warp operations: lanes deposit a value, the last one to arrive computes everybody's result and
// lets them go on.
namespace attest::simt {
namespace {

// What a lane reads from one that takes no part: undefined on the device. A NaN with a payload of
// its own, in both halves.
constexpr std::uint64_t undefined_value = 0x7fc0dead'7fc0deadU;

std::uint64_t combine(WarpOperation operation, std::uint64_t a, std::uint64_t b) {
  const auto x = static_cast<std::uint32_t>(a), y = static_cast<std::uint32_t>(b);
  const auto sx = static_cast<std::int32_t>(x), sy = static_cast<std::int32_t>(y);
  switch (operation) {
    case WarpOperation::add:
      return x + y;
    case WarpOperation::min_signed:
      return sx < sy ? x : y;
    case WarpOperation::min_unsigned:
      return x < y ? x : y;
    case WarpOperation::max_signed:
      return sx > sy ? x : y;
    case WarpOperation::max_unsigned:
      return x > y ? x : y;
    case WarpOperation::bit_and:
      return x & y;
    case WarpOperation::bit_or:
      return x | y;
    case WarpOperation::bit_xor:
      return x ^ y;
    default:
      return 0;
  }
}

template <typename F>
void for_each_lane(unsigned lanes, F&& visit) {
  for (; lanes != 0; lanes &= lanes - 1) visit(static_cast<unsigned>(std::countr_zero(lanes)));
}

}  // namespace

void BlockRunner::exchange(const Meeting& meeting, Thread* lanes) {
  const unsigned all = meeting.arrived;
  switch (meeting.operation) {
    case WarpOperation::sync:
      return;
    case WarpOperation::shuffle:
      for_each_lane(all, [&](unsigned lane) {
        const unsigned source = lanes[lane].source;
        lanes[lane].result = (all >> source & 1U) != 0 ? lanes[source].value : undefined_value;
      });
      return;
    case WarpOperation::ballot: {
      unsigned votes = 0;
      for_each_lane(all, [&](unsigned lane) { votes |= unsigned{lanes[lane].value != 0} << lane; });
      for_each_lane(all, [&](unsigned lane) { lanes[lane].result = votes; });
      return;
    }
    case WarpOperation::match_any:
      for_each_lane(all, [&](unsigned lane) {
        unsigned equal = 0;
        for_each_lane(all, [&](unsigned other) {
          equal |= unsigned{lanes[other].value == lanes[lane].value} << other;
        });
        lanes[lane].result = equal;
      });
      return;
    case WarpOperation::collective: {
      // PTX leaves undefined what mma.sync and its kin do when a lane has exited.
      if (all != 0xffffffffU) {
        report_incomplete_collective(lanes[std::countr_zero(all)]);
        return;
      }
      std::array<Collective*, warp_size> operands;
      for_each_lane(all, [&](unsigned lane) {
        operands[lane] = reinterpret_cast<Collective*>(lanes[lane].value);
      });
      operands[0]->work(operands.data());
      return;
    }
    default: {
      const unsigned first = static_cast<unsigned>(std::countr_zero(all));
      std::uint64_t total = lanes[first].value;
      for_each_lane(all & (all - 1), [&](unsigned lane) {
        total = combine(meeting.operation, total, lanes[lane].value);
      });
      for_each_lane(all, [&](unsigned lane) { lanes[lane].result = total; });
    }
  }
}

/// All lanes have arrived: results are computed and the lanes may go on.
void BlockRunner::finish(Warp& warp, unsigned index) {
  const Meeting meeting = warp.meeting[index];
  warp.meeting[index] = warp.meeting[--warp.meetings];
  const auto first = static_cast<std::size_t>(&warp - warps_.data()) * warp_size;
  exchange(meeting, &threads_[first]);
  // Only __syncwarp orders memory; shuffles and votes do not [CUDA C++ Programming Guide, warp
  // functions].
  if (meeting.operation == WarpOperation::sync && warp.epoch < last_epoch) ++warp.epoch;
  warp.ready |= meeting.arrived;
  if (launch_->tracer != nullptr)
    launch_->tracer->warp_operation(static_cast<unsigned>(first) / warp_size, meeting.arrived,
                                    (meeting.arrived | warp.exited) == ~0U);
}

/// A lane that exits is no longer waited for.
void BlockRunner::finish_meetings_without(Warp& warp) {
  for (unsigned m = warp.meetings; m-- > 0;)
    if ((warp.meeting[m].mask & ~warp.exited) == warp.meeting[m].arrived) finish(warp, m);
}

std::uint64_t BlockRunner::warp_exchange(WarpOperation operation, unsigned mask,
                                         std::uint64_t value, unsigned source, const char* file,
                                         int line) {
  const unsigned self = current_, bit = 1U << lane();
  Thread& thread = threads_[self];
  thread.file = file;
  thread.line = line;
  thread.value = value;
  thread.source = source;
  if ((mask & bit) == 0) return undefined_value;

  Warp& warp = warps_[self / warp_size];
  unsigned m = 0;
  while (m < warp.meetings &&
         (warp.meeting[m].mask != mask || warp.meeting[m].operation != operation))
    ++m;
  if (m == warp.meetings) warp.meeting[warp.meetings++] = {mask, 0, operation};
  warp.meeting[m].arrived |= bit;
  if (warp.meeting[m].arrived == (mask & ~warp.exited)) {
    finish(warp, m);
    warp.ready &= ~bit;  // the last one does not stop
    make_current(self);
    return thread.result;
  }
  wait();
  return thread.result;
}

}  // namespace attest::simt
