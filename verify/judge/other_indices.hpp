#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "verify/judge/run.hpp"

namespace attest {

/// Numbers that a launch reads in arrays, and that its sizes do not tell.
struct IndexKind {
  std::string_view name;
  bool (*is_read)(const Case&);
  /// Puts other numbers in the case, a function of the bits; all sizes that a kernel is told stay
  /// as they are.
  void (*change)(Case&, std::uint64_t bits);
};
/// Lengths of packed entries, hidden keys, the pages of a table.
[[nodiscard]] const std::vector<IndexKind>& index_kinds();

/// The case with other numbers of the given kinds, all that it reads of them. Such that lie in as
/// much memory as the case's are preferred. Nothing where it reads none, or the kernel takes no
/// others.
[[nodiscard]] std::optional<Case> with_other_indices(
    const Run& run, const std::function<bool(const IndexKind&)>& is_wanted);

}  // namespace attest
