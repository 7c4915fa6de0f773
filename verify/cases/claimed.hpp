#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/records/case.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// Demands of a case on a kernel, by name: its element type, mask, head dim and extras, choices of
/// a Plan, and whether its heads, groups, batch or head dim are beyond what most problems have.
[[nodiscard]] std::set<std::string> facts_of(const Case& c);

/// Something that a kernel says it can do.
struct Claim {
  std::string fact;  ///< one of facts_of the cases that show it
  /// The kernel claims it if it takes one of these. Empty: its description claims it.
  std::vector<Case> probes{};
};

/// Facts that the kernel claims, or may claim: what its description lists, what a Problem has that
/// a description does not mention (many heads, large groups, wide heads), and every choice of its
/// Plans. Probes are made from `example`, a case that it has run.
[[nodiscard]] std::vector<Claim> claims_of(const KernelInfo& kernel, const Case& example);

/// Claimed facts that are not in `shown`. `takes` decides on the probes of a claim that this
/// process does not reject.
[[nodiscard]] std::vector<std::string> claims_not_shown(
    const KernelInfo& kernel, const Case& example, const std::set<std::string>& shown,
    const std::function<bool(const Case&)>& takes);

}  // namespace attest
