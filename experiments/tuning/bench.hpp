#pragma once

#include <optional>
#include <string>

#include "core/attention/plan.hpp"

namespace attest {

/// Where the Plans of one kernel are tried on one problem.
class Bench {
 public:
  Bench() = default;
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  virtual ~Bench() = default;

  /// A sentence when the Plan gives a wrong answer, or none.
  [[nodiscard]] virtual std::optional<std::string> why_wrong(const Plan& plan) = 0;
  /// Milliseconds of a launch, measured once, after a warm-up.
  [[nodiscard]] virtual double time_ms(const Plan& plan) = 0;
};

}  // namespace attest
