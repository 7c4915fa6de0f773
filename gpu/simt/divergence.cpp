#include <fmt/format.h>

#include <algorithm>

#include "gpu/simt/block_cluster.hpp"
#include "gpu/simt/block_runner.hpp"
#include "gpu/simt/finding_log.hpp"
#include "gpu/simt/symbols.hpp"

namespace attest::simt {

/// Description of what the thread waits for.
std::string BlockRunner::describe_wait(unsigned thread) const {
  const auto sleeper = std::find_if(sleepers_.begin(), sleepers_.end(),
                                    [&](const Sleeper& s) { return s.thread == thread; });
  if (sleeper == sleepers_.end()) {
    const Warp& warp = warps_[thread / warp_size];
    return (warp.at_barrier >> thread % warp_size & 1U) != 0 ? "__syncthreads" : "a warp operation";
  }
  const void* const key = sleeper->key;
  if (key == cluster_)
    return fmt::format("the barrier of the cluster, where {} threads are,", cluster_->arrived());
  if (const auto found = mbarriers_.find(key); found != mbarriers_.end()) {
    const auto [arrivals, pending, bytes, phase] = found->second;
    return fmt::format(
        "a barrier in shared memory whose phase {} lacks {} of {} arrivals and {} "
        "bytes,",
        phase, static_cast<int>(pending), arrivals, bytes);
  }
  for (std::size_t id = 0; id < named_barriers_.size(); ++id) {
    if (key == &named_barriers_[id])
      return fmt::format("named barrier {}, where {} threads are,", id,
                         named_barriers_[id].arrived);
  }
  return "a product of the warpgroup,";
}

/// No thread can advance and the barrier is not complete: says who waits where and who does not
/// come.
void BlockRunner::report_divergence() {
  diverged_ = true;
  // One thread of each place where threads wait, the most frequent place first.
  struct Place {
    std::string where;
    unsigned thread, count;
  };
  std::vector<Place> places;
  const auto note = [&](std::string where, unsigned thread) {
    const auto same = std::find_if(places.begin(), places.end(),
                                   [&](const Place& p) { return p.where == where; });
    if (same == places.end())
      places.push_back({std::move(where), thread, 1});
    else
      ++same->count;
  };
  const Thread* first_waiting = nullptr;
  for (unsigned t = 0; t < thread_count_; ++t) {
    const Warp& warp = warps_[t / warp_size];
    const unsigned bit = 1U << t % warp_size;
    if ((warp.exited & bit) != 0) {
      note("has exited", t);
      continue;
    }
    if (first_waiting == nullptr) first_waiting = &threads_[t];
    note(fmt::format("waits at {} {}", describe_wait(t),
                     source_line(threads_[t].file, threads_[t].line)),
         t);
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.count > b.count; });
  std::string text;
  for (const Place& place : places)
    text += fmt::format(
        "{}thread {}{} {}", text.empty() ? "" : ", ", format_index(threads_[place.thread].index),
        place.count == 1 ? "" : fmt::format(" (one of {})", place.count), place.where);
  const auto point = static_cast<ProgramPoint>(first_waiting == nullptr ? 0 : first_waiting->line);
  if (launch_->findings->is_new("divergent barrier", point))
    launch_->findings->add(
        "divergent barrier",
        fmt::format("{}, block {}: {}; the launch was abandoned",
                    function_name(launch_->call.address), format_index(running_->block), text));
}

void BlockRunner::report_incomplete_collective(const Thread& thread) {
  const auto point = static_cast<ProgramPoint>(thread.line);
  if (!launch_->findings->is_new("divergent barrier", point)) return;
  launch_->findings->add(
      "divergent barrier",
      fmt::format("{}, block {}: thread {} makes an operation of the whole warp at {}, but a lane "
                  "has exited; its result is undefined",
                  function_name(launch_->call.address), format_index(running_->block),
                  format_index(thread.index), source_line(thread.file, thread.line)));
}

}  // namespace attest::simt
