#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/records/case.hpp"
#include "core/run/device.hpp"
#include "core/run/kernel.hpp"
#include "cpu_reference/forward/reference_f64.hpp"
#include "verify/judge/judgement.hpp"
#include "verify/judge/phase.hpp"
#include "verify/judge/verdict.hpp"

namespace attest {

/// One case to be judged.
struct CaseTask {
  Executor executor = Executor::cpu;
  Case the_case{};
  LawSelection laws{};  ///< where all rules judge: the glob of those that are always asked
  Judges judges = Judges::laws;
  std::optional<std::uint64_t> certify{};  ///< seed that draws a row for the oracle; nothing: none
};

/// Verdict on a case, and what else was found while it was judged.
struct CaseAnswer {
  CaseVerdict verdict{};
  Certificate certificate{};
  std::optional<Judgement> judgement{};  ///< when not the laws alone judge; then no verdict
  PhaseTimes seconds{};
  std::string library{};  ///< who computed, as the kernel noted (note_library); empty: not noted
};

/// Judges cases of one thread, one after the other.
class CaseRunner {
 public:
  CaseRunner() = default;
  CaseRunner(const CaseRunner&) = delete;
  CaseRunner& operator=(const CaseRunner&) = delete;
  virtual ~CaseRunner() = default;
  /// `kernel` is the one that the task names. Throws MachineError if the device cannot be made;
  /// std::logic_error if the f64 reference errs more than it says: then no verdict is worth
  /// anything.
  [[nodiscard]] virtual CaseAnswer run(const KernelInfo& kernel, const CaseTask& task) = 0;
  /// For candidates of a shrinker: at most this long a case, infinity being the usual limit, and no
  /// second look at a failure. 0: the usual again. Nothing where there is no watchdog.
  virtual void hurry(double /*seconds*/) {}
};

/// Judges in this process: a kernel that crashes or hangs takes the process with it, and one whose
/// launch fails throws KernelFault. Devices are made when first needed.
class InProcessRunner : public CaseRunner {
 public:
  /// `note` follows what is being done; may be null.
  explicit InProcessRunner(ActivityNote* note = nullptr) : note_(note) {}
  [[nodiscard]] CaseAnswer run(const KernelInfo& kernel, const CaseTask& task) override;

 private:
  ActivityNote* note_;
  std::map<Executor, std::unique_ptr<Device>> devices_;
};

}  // namespace attest
