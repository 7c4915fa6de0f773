#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"
#include "core/base/json.hpp"
#include "gpu/model/link_table.hpp"
#include "gpu/model/rank_model.hpp"

namespace attest {

/// Question of `attest explain` about a kernel of several ranks, besides problem and Plan.
struct RankQuestion {
  const LinkModel* link = nullptr;  ///< null: slowest_link() of the GPUs
  double flops_per_s = 0;           ///< of attention on one GPU; 0: attention_flops_per_s()
};

inline constexpr std::array<std::int64_t, 3> all_distributions{
    Distribution::contiguous, Distribution::zigzag, Distribution::stripe};

/// A group of so many GPUs: the problem as a ring in each distribution, and as Ulysses.
struct RankRow {
  std::int64_t ranks = 1;
  const LinkModel* link = nullptr;
  std::array<RankTimes, all_distributions.size()> rings{};  ///< of all_distributions
  std::array<std::optional<double>, all_distributions.size()> break_even{};
  RankTimes ulysses{};

  [[nodiscard]] const RankTimes& ring(std::int64_t distribution) const {
    return rings.at(static_cast<std::size_t>(distribution - 1));
  }
};

/// Model of a problem that GPUs share: plan.ranks of them, and 2 to 1,024.
struct RankScaling {
  Problem problem;
  Plan plan;  ///< contiguous where it names no distribution
  double flops_per_s = 0;
  bool is_rate_given = false;
  std::string why_not_known{};  ///< then there are no rows
  RankRow asked{};              ///< plan.ranks
  std::vector<RankRow> rows{};  ///< ascending
};

/// Throws InvalidInput for more ranks than 4,096.
[[nodiscard]] RankScaling rank_scaling(const Problem& problem, const Plan& plan,
                                       const GpuModel& gpu, const RankQuestion& question);

/// The model for people, and as a JSON object.
[[nodiscard]] std::string rank_scaling_text(const RankScaling& scaling);
[[nodiscard]] Json rank_scaling_json(const RankScaling& scaling);

}  // namespace attest
