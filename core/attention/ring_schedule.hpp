#pragma once

#include <cstdint>
#include <vector>

#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"

namespace attest {

/// Rows of a rank that see the first keys of another one, as one launch of a kernel for one GPU.
struct RingLaunch {
  std::int64_t first_query = 0, queries = 0;  ///< rows of the rank
  std::int64_t keys = 0;                      ///< that the last of them sees
  bool is_causal = false;  ///< each row sees one key less than the next; else all see the same
};

/// Meeting of a rank's queries with the keys of one rank.
struct RingStep {
  std::int64_t owner = 0;
  std::int64_t keys = 0;  ///< of the owner, the first ones, that some row sees; 0: nothing is to do
  std::vector<RingLaunch> launches;  ///< no row is in two of them
};

/// Steps of a rank in a ring of plan.ranks [Liu et al. 2023, arXiv 2310.01889], its own keys first,
/// then those of the rank before it, and so on. A rank has its tokens in ascending order, and a
/// mask without windows leaves a row the first keys: so in any distribution a row sees the first
/// keys of any rank, and runs of rows see as many or one more each.
/// Entries of the problem must have one length, and its mask no window.
[[nodiscard]] std::vector<RingStep> ring_steps(const Problem& problem, const Plan& plan,
                                               std::int64_t rank);

/// Steps of ring_steps() with a rank's own keys in two: the first of its rows meet them at the
/// beginning, the others behind all other steps, with about as much to do. So something is left to
/// compute while what the step before gave is on its way. One step where a rank is alone, or too
/// few rows are there.
[[nodiscard]] std::vector<RingStep> ring_steps_with_own_last(const Problem& problem,
                                                             const Plan& plan, std::int64_t rank);

}  // namespace attest
