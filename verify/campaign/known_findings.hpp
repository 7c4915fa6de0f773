#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/run/kernel.hpp"
#include "verify/judge/verdict.hpp"

namespace attest {

/// A defect of a library that FINDINGS.md tells of: what a failure must look like to be this one
/// and no other.
struct KnownFinding {
  std::string id;                     ///< of gpu/peers/README.md: `P11`
  std::string summary;                ///< one line
  std::string report;                 ///< address; empty: no public report was found
  std::string kernels;                ///< glob
  std::vector<std::string> versions;  ///< of which it is known: `cuDNN 9.14` means 9.14.0 too
  std::string laws;                   ///< glob over those that see it
  std::string stored_case;            ///< name of a file of verify/regressions that shows it
  /// True if the failure has this finding's cause. Asked of the case as it was found, and when it
  /// is shrunk again.
  bool (*is_about)(const Failure&) = nullptr;

  /// The report, or where else the finding is described.
  [[nodiscard]] std::string_view described_at() const;
  /// True if the finding is known of the version that a kernel noted (note_library). Of an unknown
  /// version nothing is known.
  [[nodiscard]] bool is_known_of(std::string_view library) const;
  /// True if the failure is this defect, whatever the version. Never of a failure that gave no
  /// answer, or that did not repeat.
  [[nodiscard]] bool explains(const KernelInfo& kernel, const Failure& failure) const;
};

/// The table.
[[nodiscard]] const std::vector<KnownFinding>& all_known_findings();

/// The first finding of a table that explains the failure and is known of the library; nullptr
/// where there is none: then the failure is one.
[[nodiscard]] const KnownFinding* known_finding(const std::vector<KnownFinding>& findings,
                                                const KernelInfo& kernel, const Failure& failure,
                                                std::string_view library);

}  // namespace attest
