#include "verify/campaign/killing_feature.hpp"

#include <algorithm>

namespace attest {
namespace {

/// The chi-squared statistic with one degree of freedom is larger in 0.1 % of all draws. Of the
/// hundred and more features, some one exceeds it by chance for about one bug of twenty that needs
/// none.
constexpr double least_chi_squared = 10.83;

/// The square of the phi coefficient times the number of cases: the chi-squared statistic of the
/// hypothesis that cases kill as often with the feature as without. 0 where they kill more seldom.
double chi_squared(const KillTally& with, const KillTally& all) {
  const auto product = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) * static_cast<double>(b);
  };
  const double excess = product(with.kills, all.cases) - product(with.cases, all.kills);
  if (!(excess > 0)) return 0;  // then neither factor of the divisor is 0
  return excess * excess / product(with.cases, all.cases - with.cases) *
         static_cast<double>(all.cases) / product(all.kills, all.cases - all.kills);
}

}  // namespace

void FeatureTallies::add(const std::vector<std::string>& features, bool is_killed) {
  const auto count = [&](KillTally& tally) {
    ++tally.cases;
    if (is_killed) ++tally.kills;
  };
  count(all);
  for (const std::string& name : features) count(by_feature[name]);
}

std::optional<KillingFeature> killing_feature(const FeatureTallies& bug,
                                              const std::vector<std::string>& candidates,
                                              const Coverage& anywhere) {
  const auto cases_anywhere = [&](const std::string& name) {
    const auto found = anywhere.find(name);
    return found == anywhere.end() ? 0 : found->second;
  };
  std::optional<KillingFeature> best;
  double largest = 0;
  for (const auto& [name, tally] : bug.by_feature) {
    if (std::ranges::find(candidates, name) == candidates.end()) continue;
    const double found = chi_squared(tally, bug.all);
    if (found < least_chi_squared || found < largest) continue;
    if (found == largest && cases_anywhere(name) >= cases_anywhere(best->name)) continue;
    largest = found;
    best = KillingFeature{.name = name, .tally = tally};
  }
  return best;
}

}  // namespace attest
