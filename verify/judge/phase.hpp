#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <string_view>

#include "core/run/kernel.hpp"

namespace attest {
/// Phase of the work on a case.
enum class Phase {
  draw,       ///< Problem, Plan, layouts and seeds
  inputs,     ///< values of Q, K and V
  ask,        ///< the kernel, about what it can do (Question)
  launch,     ///< the kernel, with its buffers prepared, poisoned and read back
  reference,  ///< the exact answer and the bound
  laws,       ///< comparing, and making variations of a case
  certify     ///< rows of the reference against the oracle
};
inline constexpr std::array<std::string_view, 7> phase_names{
    "draw", "inputs", "ask", "launch", "reference", "laws", "certify"};

/// Questions to a kernel's functions besides to run.
enum class Question { can_run, plans, precision, workspace };
/// Texts of questions, to follow `while the kernel was asked`, with the function's name in
/// include/attest/plugin.h.
inline constexpr std::array<std::string_view, 4> question_texts{
    "whether it can run the case: unsupported()", "for its plans",
    "how it rounds: refine_precision()", "for its scratch memory: scratch_bytes()"};
using PhaseTimes = std::array<double, phase_names.size()>;  ///< seconds, by Phase

/// Current activity of a process, readable from outside when it dies or does not answer. Lives in
/// memory that two processes share, and a kernel gone wild may write to it: readers check all.
struct ActivityNote {
  std::atomic<int> phase = 0;
  std::atomic<int> question = 0;  ///< the last one, see Phase::ask
  std::array<char, 60> law{};     ///< being checked; ends with 0
  std::array<char, 60> fault{};   ///< what an access that killed the process was about; ends with 0
};

/// Adds up the time spent in each phase of one case. Phases nest: the inner one gets the time.
class PhaseClock {
 public:
  /// Follows the phases in `note` as well, unless it is null.
  explicit PhaseClock(ActivityNote* note = nullptr) : note_(note) {}

  Phase enter(Phase phase) {
    const auto now = std::chrono::steady_clock::now();
    times_[static_cast<std::size_t>(phase_)] += std::chrono::duration<double>(now - since_).count();
    since_ = now;
    const Phase before = phase_;
    phase_ = phase;
    if (note_ != nullptr) note_->phase = static_cast<int>(phase);
    return before;
  }
  void set_question(Question question) {
    if (note_ != nullptr) note_->question = static_cast<int>(question);
  }
  void set_law(std::string_view law) {
    if (note_ == nullptr) return;
    const std::size_t size = law.copy(note_->law.data(), note_->law.size() - 1);
    note_->law[size] = '\0';
  }
  [[nodiscard]] PhaseTimes times() {
    (void)enter(phase_);
    return times_;
  }

 private:
  ActivityNote* note_;
  PhaseTimes times_{};
  Phase phase_ = Phase::laws;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

/// Scope of a phase: enters it when made, returns to the phase before at its end.
class InPhase {
 public:
  InPhase(PhaseClock& clock, Phase phase) : clock_(clock), before_(clock.enter(phase)) {}
  InPhase(const InPhase&) = delete;
  InPhase& operator=(const InPhase&) = delete;
  ~InPhase() { (void)clock_.enter(before_); }

 private:
  PhaseClock& clock_;
  Phase before_;
};

/// A kernel that behaves like `kernel`, but whose answers about itself (what it supports, its
/// plans, roundings and scratch memory) count as Phase::ask of `clock`: whoever reads the clock's
/// note after a crash knows which function it was. They leave the floating-point mode of the caller
/// as it was. The clock outlives the kernel.
[[nodiscard]] KernelInfo watched_kernel(KernelInfo kernel, PhaseClock& clock);

}  // namespace attest
