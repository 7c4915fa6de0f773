#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/operation.hpp"

namespace attest {

class Run;

/// The columns of an operation's kill matrix: rules of other projects, then our three layers.
[[nodiscard]] std::size_t peer_columns(const Operation& operation);
[[nodiscard]] std::size_t matrix_columns(const Operation& operation);
[[nodiscard]] std::string_view column_name(const Operation& operation, std::size_t column);
[[nodiscard]] std::string_view column_head(const Operation& operation, std::size_t column);

/// Rules that judge a case.
enum class Judges {
  laws,      ///< the laws that the task selects
  peers,     ///< the rules of other projects
  all_rules  ///< those and our layers, each whatever the others say
};

/// Answers of all rules to one case: true is a rejection.
struct Judgement {
  std::vector<bool> rejected{};
  std::vector<std::string> laws{};  ///< of ours that reject it, the first of each layer
};

/// Judges a run by all rules. As in a campaign, every law that reads the base launch is checked,
/// and one drawn from those that launch again; besides, those that match `always`, a glob. `judges`
/// is peers or all_rules. A KernelFault passes through.
[[nodiscard]] Judgement judge_by_rules(Run& run, Judges judges, const std::string& always);

}  // namespace attest
