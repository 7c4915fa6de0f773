#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace attest {

class Run;

/// The columns of the kill matrix: five rules of other projects, then our three layers.
inline constexpr std::size_t peer_columns = 5;
inline constexpr std::size_t matrix_columns = peer_columns + 3;

/// Who judges a case.
enum class Judges {
  laws,      ///< the laws that the task selects
  peers,     ///< the rules of other projects
  all_rules  ///< those and our layers, each whatever the others say
};

/// What every rule says of one case: true is a rejection.
struct Judgement {
  std::array<bool, matrix_columns> rejected{};
  std::vector<std::string> laws{};  ///< of ours that reject it, the first of each layer
};

/// As in a campaign, every law that reads the base launch is checked, and one drawn from those that
/// launch again; besides, those that match `always`, a glob. `judges` is peers or all_rules. A
/// KernelFault passes through.
[[nodiscard]] Judgement judge_by_rules(Run& run, Judges judges, const std::string& always);

}  // namespace attest
