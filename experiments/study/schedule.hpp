#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "experiments/study/language/point.hpp"
#include "experiments/timing/gate.hpp"
#include "verify/campaign/campaign.hpp"

namespace attest {

/// Kernel that is timed, or on an executor counted, with its case: a point of the study, or a
/// baseline of some of its points.
struct TimedKernel {
  const KernelInfo* kernel = nullptr;
  Case subject{};
  std::string id{};        ///< point_id
  std::string baseline{};  ///< its name; empty: a point
  AxisValues axes{};
  bool is_wanted = true;  ///< false: timed for the ratios only, its own record is elsewhere

  [[nodiscard]] bool is_point() const { return baseline.empty(); }
  [[nodiscard]] Gate::Candidate candidate() const {
    return {kernel, subject.problem, subject.plan, subject.layouts.paging};
  }
};

/// Kernels that are timed side by side: points with one problem, one layout, one set of
/// inputs and the same baselines, and these.
struct Group {
  std::vector<TimedKernel> points, baselines;

  /// Records that are to be made of the group.
  [[nodiscard]] std::size_t wanted() const;
  /// For what all have in common.
  [[nodiscard]] const TimedKernel& any() const { return points.empty() ? baselines[0] : points[0]; }
};

/// Points that are timed side by side at most: rounds are short, and a kill loses few.
inline constexpr std::size_t points_a_group = 8;
/// Most points of a problem that are timed together: with halving all, for they race; of what an
/// executor counts one, so that ranks share evenly.
[[nodiscard]] std::size_t most_side_by_side(const StudySpec& spec,
                                            const std::vector<Point>& points);

/// All groups in the order in which they are measured, drawn by the seed: problems in any order,
/// the points of a problem in any order, at most `most` at a time, in parts alike in
/// size. The record of a baseline belongs to the first group that has it; of one that is a point of
/// the study as well, to the point. The same for all shards.
[[nodiscard]] std::vector<Group> schedule(const std::vector<Point>& points, std::uint64_t seed,
                                          std::size_t most);

/// The groups of a shard without what is done: kernels whose id is in `done`. Shards have as
/// many kernels each as whole groups allow.
[[nodiscard]] std::vector<Group> groups_to_do(const std::vector<Group>& groups, const Shard& shard,
                                              const std::set<std::string>& done);

}  // namespace attest
