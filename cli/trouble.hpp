#pragma once

#include <string>

#include "core/base/error.hpp"

namespace attest {

/// Trouble of the machine that may wait: a full disk must not take along the results that are not
/// on it. The first is told at the end.
class Trouble {
 public:
  /// Did it succeed?
  template <typename Work>
  bool tries(const Work& work) {
    try {
      work();
      return true;
    } catch (const MachineError& error) {
      if (first_.empty()) first_ = error.what();
      return false;
    }
  }
  /// Throws MachineError with the first.
  void tell() const {
    if (!first_.empty()) throw MachineError(first_);
  }

 private:
  std::string first_;
};

}  // namespace attest
