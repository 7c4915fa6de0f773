#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "verify/cases/coverage.hpp"

namespace attest {

/// Number of cases that a planted bug was run on, and of those that killed it.
struct KillTally {
  std::int64_t cases = 0;
  std::int64_t kills = 0;

  friend bool operator==(const KillTally&, const KillTally&) = default;
};

/// The cases of a planted bug by their features (features_of).
struct FeatureTallies {
  KillTally all{};
  std::map<std::string, KillTally> by_feature{};

  /// Adds one case.
  void add(const std::vector<std::string>& features, bool is_killed);
};

/// A feature, and the cases of the bug that had it.
struct KillingFeature {
  std::string name;
  KillTally tally{};
};

/// The feature that tells best which cases kill the bug: of `candidates` the one with the largest
/// phi coefficient (the correlation of having it and killing). Candidates are the features of a
/// shrunk case that kills, for what it does not have the bug does not need. Of equals it is the one
/// that is rarest in `anywhere`, the features of the cases of many bugs, since that is there by
/// chance most seldom; then the first by name. Empty where no case killed, or where nothing stands
/// out: no feature's share of the kills is significant at 0.1 %.
[[nodiscard]] std::optional<KillingFeature> killing_feature(
    const FeatureTallies& bug, const std::vector<std::string>& candidates,
    const Coverage& anywhere);

}  // namespace attest
