#pragma once

#include <string>

namespace attest {

/// Origin of a number: enough to build the same program again and to judge the machine it ran on.
struct Provenance {
  std::string commit{};    ///< short hash, or `unknown` outside a git checkout
  bool dirty = false;      ///< tracked files differed from the commit when this program was built
  std::string compiler{};  ///< of the host code
  std::string cuda_compiler{};  ///< empty: built without GPU code
  std::string build_type{};
  std::string sanitizers{};  ///< empty: none
  std::string host{};        ///< CPU model and number of hardware threads
  std::string device{};  ///< Device::description() of the device that ran the case; empty: none did
  std::string date{};    ///< UTC, ISO 8601 to the second

  friend bool operator==(const Provenance&, const Provenance&) = default;
};

/// Provenance of this program on this machine, now.
[[nodiscard]] Provenance current_provenance(std::string device);

}  // namespace attest
