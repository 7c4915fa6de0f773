#include "core/run/default_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/base/error.hpp"
#include "core/run/card.hpp"

namespace attest {
namespace {

/// The row's Plan if the kernel offers it.
std::optional<Plan> offered_plan(const TunedPlan& row, const KernelInfo& kernel,
                                 const Problem& problem, const std::vector<Plan>& offered) {
  try {
    const Plan plan = plan_from_string(row.plan);
    if (is_offered(kernel, problem, offered, plan)) return plan;
  } catch (const InvalidInput&) {
    // A field or a choice that Plans no longer have.
  }
  return std::nullopt;
}

/// Puts the nearest row into `best`, which has none.
void take_nearest_row(DefaultPlan& best, const KernelInfo& kernel, const Problem& problem,
                      const std::vector<Plan>& offered, const Card& card,
                      const TuningTable& table) {
  const TuningKey key = tuning_key(kernel.name, problem, card.name);
  for (const TunedPlan& row : table.rows) {
    const std::optional<int> octaves = octaves_between(row.key, key);
    if (!octaves) continue;
    const std::optional<double> card_octaves = octaves_between(card_in(row.key.gpu), card);
    if (!card_octaves) continue;
    const std::optional<Plan> plan = offered_plan(row, kernel, problem, offered);
    if (!plan) {
      ++best.stale_rows;
    } else if (!best.row || *octaves + *card_octaves < best.octaves + best.card_octaves) {
      using enum DefaultPlan::Origin;
      best.plan = *plan;
      best.origin = *octaves == 0 ? tuned : nearby;
      best.row = row;
      best.octaves = *octaves;
      best.card_octaves = *card_octaves;
    }
  }
}

/// The Plan with as many parts of keys an SM on `to` SMs as it has on `from`. Lengths of parts keep
/// what tiles of up to 128 keys need.
Plan scaled(Plan plan, int from, int to) {
  const double ratio = static_cast<double>(to) / from;
  const auto nearest = [](double value) { return std::max<std::int64_t>(1, std::llround(value)); };
  if (plan.key_splits > 1) {
    plan.key_splits = nearest(static_cast<double>(plan.key_splits) * ratio);
  }
  if (plan.split_keys > 0) {
    const std::int64_t step = std::gcd(plan.split_keys, std::int64_t{128});
    plan.split_keys = step * nearest(static_cast<double>(plan.split_keys / step) / ratio);
  }
  return plan;
}

std::string words_of_scaling(int from, int to) {
  return fmt::format("; keys cut for {} SMs instead of {}", to, from);
}

/// A kernel without `unsupported` takes nothing but what it offers.
void scale(DefaultPlan& choice, const KernelInfo& kernel, const Problem& problem, int from,
           int to) {
  if (from <= 0 || to <= 0 || !kernel.unsupported) return;
  const Plan plan = scaled(choice.plan, from, to);
  if (plan == choice.plan || kernel.unsupported(problem, plan)) return;
  choice.plan = plan;
  choice.scaled_from = from;
  choice.scaled_to = to;
}

}  // namespace

bool is_offered(const KernelInfo& kernel, const Problem& problem, const std::vector<Plan>& offered,
                const Plan& plan) {
  if (std::ranges::find(offered, plan) != offered.end()) return true;
  if (!kernel.unsupported || kernel.unsupported(problem, plan)) return false;
  return std::ranges::all_of(plan_fields(), [&](const PlanField& field) {
    return std::ranges::any_of(
        offered, [&](const Plan& other) { return other.*field.member == plan.*field.member; });
  });
}

std::optional<DefaultPlan> default_plan(const KernelInfo& kernel, const Problem& problem,
                                        std::string_view gpu, const TuningTable& table) {
  const std::vector<Plan> offered = kernel.plans(problem);
  if (offered.empty()) return std::nullopt;
  const Card card = card_in(gpu);
  DefaultPlan best{.plan = offered.front(), .gpu = std::string(card.name)};
  if (kernel.has_plan_rule) {
    best.origin = DefaultPlan::Origin::rule;
  } else {
    take_nearest_row(best, kernel, problem, offered, card, table);
  }
  scale(best, kernel, problem, best.row ? card_in(best.row->key.gpu).sms : sms_of_rules, card.sms);
  return best;
}

std::string to_string(const DefaultPlan& choice) {
  std::string text;
  switch (choice.origin) {
    case DefaultPlan::Origin::tuned:
    case DefaultPlan::Origin::nearby: {
      const std::string& card = choice.row->key.gpu;
      text = fmt::format(
          "tuned on {}{} for {}{}", card,
          card == choice.gpu ? "" : fmt::format(", the nearest card to {},", choice.gpu),
          choice.row->problem,
          choice.origin == DefaultPlan::Origin::nearby ? ", the nearest that was" : "");
      break;
    }
    case DefaultPlan::Origin::rule:
      text = "the kernel's rule for these lengths and heads";
      break;
    case DefaultPlan::Origin::first:
      text = "the kernel's first: nothing like this was tuned";
  }
  if (choice.scaled_to != 0) text += words_of_scaling(choice.scaled_from, choice.scaled_to);
  if (choice.stale_rows > 0) {
    text += fmt::format("; {} {} named a plan that the kernel does not offer here",
                        choice.stale_rows, choice.stale_rows == 1 ? "row" : "rows");
  }
  return text;
}

std::string where_plans_are_from(std::string_view gpu, const TuningTable& table) {
  const Card card = card_in(gpu);
  std::optional<Card> nearest;
  double least = 0;
  for (const TunedPlan& row : table.rows) {
    const Card other = card_in(row.key.gpu);
    const auto octaves = octaves_between(other, card);
    if (!octaves || (nearest && *octaves >= least)) continue;
    nearest = other;
    least = *octaves;
  }
  if (!nearest) return "kernels' own: no card of this architecture was tuned";
  const std::string from =
      nearest->name == card.name
          ? "tuned on this card"
          : fmt::format("of {}, the nearest card that was tuned, {:.1f} octaves away",
                        nearest->name, least);
  const bool is_scaled = card.sms > 0 && card.sms != nearest->sms;
  return from + (is_scaled ? words_of_scaling(nearest->sms, card.sms) : "");
}

}  // namespace attest
