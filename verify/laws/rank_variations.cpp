// Kernels of several ranks: who has which tokens changes no more than the order of sums.
#include <algorithm>

#include "core/attention/distribution.hpp"
#include "core/operations/forward.hpp"
#include "verify/judge/variation.hpp"

namespace attest {
namespace rank_variations {

/// The case on one rank.
Varied on_one_rank(Run& run, const LawDraws&) {
  Case other = run.the_case();
  if (other.plan.ranks <= 1) return {};
  const std::vector<Plan> plans = run.kernel().plans(run.problem());
  const auto one = std::ranges::find(plans, 1, &Plan::ranks);
  if (one == plans.end()) return {};
  other.plan = *one;
  return Variation{.call = {other}, .has_own_bound = true};
}

/// Tokens rank after rank.
std::vector<std::int64_t> in_order_of_ranks(const Plan& plan, std::int64_t length) {
  std::vector<std::int64_t> order;
  for (std::int64_t rank = 0; rank < plan.ranks; ++rank) {
    const auto tokens = tokens_of_rank(plan.distribution, length, plan.ranks, rank);
    order.insert(order.end(), tokens.begin(), tokens.end());
  }
  return order;
}

/// Contiguous parts of the tokens in the order in which the case's ranks have them. Of lengths that
/// are shared out evenly, where the mask does not ask for positions.
Varied in_contiguous_parts(Run& run, const LawDraws&) {
  const Problem& p = run.problem();
  const Plan& plan = run.the_case().plan;
  if (plan.distribution != Distribution::zigzag && plan.distribution != Distribution::stripe) {
    return {};
  }
  const auto is_even = [&](std::int64_t length) { return length % (2 * plan.ranks) == 0; };
  if (p.mask != Mask::none || p.length_seed != 0 || p.padding_seed != 0 || !is_even(p.query_len) ||
      !is_even(p.key_len)) {
    return {};
  }
  Case other = run.the_case();
  other.plan.distribution = Distribution::contiguous;
  const auto queries = in_order_of_ranks(plan, p.query_len);
  const auto keys = in_order_of_ranks(plan, p.key_len);
  const auto reordered = [queries, keys](const Inputs& from) {
    Inputs to = from;
    for (const InputIndex index : {forward::q, forward::k, forward::v}) {
      const auto& order = index == forward::q ? queries : keys;
      to[index] = gathered(from[index], from[index].shape(), [&](auto b, auto h, auto n) {
        return RowPlace{b, h, order[static_cast<std::size_t>(n)]};
      });
    }
    return to;
  };
  return Variation{.call = {other, reordered},
                   .row_owed = [queries](OutputIndex, const RowPlace& row) {
                     return RowPlace{row.b, row.h, queries[static_cast<std::size_t>(row.n)]};
                   }};
}

const VariationLaws registration{{
    {.name = "ranks_agree_with_one",
     .statement = "several ranks give what one gives, within the sum of the bounds",
     .layer = Layer::bound,
     .operations = {&forward_operation},
     .failure = "one rank gives another answer than several",
     .vary = on_one_rank},
    {.name = "distribution_is_a_permutation",
     .statement = "tokens in zigzag or in stripes have the answer that they have in contiguous "
                  "parts when they come in that order, within the sum of the bounds",
     .layer = Layer::bound,
     .operations = {&forward_operation},
     .failure = "in contiguous parts, tokens in the order of the ranks have another result",
     .vary = in_contiguous_parts},
}};

}  // namespace rank_variations
}  // namespace attest
