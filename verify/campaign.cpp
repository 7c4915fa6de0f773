#include "verify/campaign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "core/error.hpp"
#include "core/input_family.hpp"
#include "core/registry.hpp"

namespace attest {
namespace {

// One case in this many has a row of its reference certified: an oracle row costs about as much as
// a small case.
constexpr std::int64_t certify_every = 4;

double worst_ratio(const Certificate& certificate) {
  return std::max(certificate.worst_o_ratio, certificate.worst_lse_ratio);
}

/// Devices of one worker, made when first needed.
class Devices {
 public:
  Device& of(Executor executor) {
    std::unique_ptr<Device>& device = devices_[executor];
    if (!device) device = make_device(executor);
    return *device;
  }

 private:
  std::map<Executor, std::unique_ptr<Device>> devices_;
};

/// State shared by the workers. Task t is case t / kernels of kernel t % kernels: a time limit cuts
/// all kernels alike.
class Campaign {
 public:
  Campaign(const std::vector<const KernelInfo*>& kernels, const CampaignOptions& options)
      : kernels_(kernels), options_(options), results_(kernels.size()) {
    for (std::size_t i = 0; i < kernels.size(); ++i) results_[i].kernel = kernels[i];
  }

  std::vector<KernelResult> run() {
    std::vector<std::jthread> workers;
    for (int i = 0; i < std::max(1, options_.jobs); ++i) {
      workers.emplace_back([this] { work(); });
    }
    workers.clear();
    if (error_) std::rethrow_exception(error_);
    return std::move(results_);
  }

 private:
  [[nodiscard]] std::int64_t total_tasks() const {
    if (options_.time_limit) return std::numeric_limits<std::int64_t>::max();
    return options_.cases_per_kernel * static_cast<std::int64_t>(kernels_.size());
  }

  [[nodiscard]] bool is_over() const {
    return stop_ || (options_.time_limit &&
                     std::chrono::steady_clock::now() - start_ > *options_.time_limit);
  }

  void work() {
    Devices devices;
    try {
      while (!is_over()) {
        const std::int64_t task = next_task_++;
        if (task >= total_tasks()) break;
        const auto count = static_cast<std::int64_t>(kernels_.size());
        run_task(static_cast<std::size_t>(task % count), task / count, devices);
        if (options_.on_case_done) options_.on_case_done();
      }
      shrink_failures(devices);
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (!error_) error_ = std::current_exception();
      stop_ = true;
    }
  }

  void run_task(std::size_t k, std::int64_t index, Devices& devices) {
    {
      const std::scoped_lock lock(mutex_);
      const KernelResult& result = results_[k];
      if (result.failure && result.failing_case < index) return;
    }
    const KernelInfo& kernel = *kernels_[k];
    const std::optional<Case> c =
        draw_case(kernel, options_.generator, options_.seed, static_cast<std::uint64_t>(index));
    if (!c) {
      const std::scoped_lock lock(mutex_);
      ++results_[k].not_drawn;
      return;
    }
    Run run(kernel, *c, devices.of(kernel.executor));
    const CaseVerdict verdict = verify_case(run, laws_for(kernel));
    Certificate certificate;
    if (index % certify_every == 0 && verdict.verdict != Verdict::unsupported) {
      certificate = certify(run, static_cast<std::uint64_t>(index));
    }
    const std::scoped_lock lock(mutex_);
    record(results_[k], *c, verdict, certificate, index);
  }

  /// A planted bug is judged by the law that must catch it.
  [[nodiscard]] LawSelection laws_for(const KernelInfo& kernel) const {
    if (kernel.killed_by.empty()) return options_.laws;
    return {.glob = kernel.killed_by, .every_law = true};
  }

  /// A reference that errs more than it says makes every verdict worthless: that ends the campaign.
  static Certificate certify(Run& run, std::uint64_t seed) {
    const Certificate certificate =
        certify_rows(run.problem(), run.inputs(), run.answer(), seed, 1);
    if (!certificate.holds()) {
      throw std::logic_error(fmt::format(
          "the f64 reference differs from the oracle by {:.3g} times its own error estimate, in {}",
          worst_ratio(certificate), to_string(run.the_case())));
    }
    return certificate;
  }

  static void record(KernelResult& result, const Case& c, const CaseVerdict& verdict,
                     const Certificate& certificate, std::int64_t index) {
    ++result.cases;
    ++result.families[c.inputs.family];
    for (const std::string& feature : features_of(*result.kernel, c)) ++result.coverage[feature];
    for (const std::string& law : verdict.checked_laws) ++result.checks[law];
    result.certified_rows += certificate.rows;
    result.worst_certificate = std::max(result.worst_certificate, worst_ratio(certificate));
    if (verdict.verdict == Verdict::vacuous && result.vacuous++ == 0) {
      result.vacuous_reason = verdict.reason;
    }
    if (verdict.failure && (!result.failure || index < result.failing_case)) {
      result.failure = verdict.failure;
      result.failing_case = index;
    }
    if (!verdict.failure) {
      result.worst_o_over_bound = std::max(result.worst_o_over_bound, verdict.worst_o_over_bound);
      result.worst_lse_over_bound =
          std::max(result.worst_lse_over_bound, verdict.worst_lse_over_bound);
    }
  }

  /// Each worker takes kernels whose failure nobody shrinks yet, once all of their cases are done.
  void shrink_failures(Devices& devices) {
    ++finished_workers_;
    while (!stop_ && finished_workers_ < std::max(1, options_.jobs)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (std::size_t k = next_shrink_++; k < kernels_.size() && !stop_; k = next_shrink_++) {
      if (!results_[k].failure) continue;
      const KernelInfo& kernel = *kernels_[k];
      const std::string law = results_[k].failure->law;
      Failure smallest = *results_[k].failure;
      const auto fails = [&](const Case& c) {
        Run run(kernel, c, devices.of(kernel.executor));
        const CaseVerdict verdict = verify_case(run, {.glob = law, .every_law = true});
        if (verdict.failure) smallest = *verdict.failure;
        return verdict.failure.has_value();
      };
      (void)shrink(kernel, smallest.the_case, fails, options_.shrink_calls);
      results_[k].failure = smallest;
    }
  }

  const std::vector<const KernelInfo*>& kernels_;
  const CampaignOptions& options_;
  std::vector<KernelResult> results_;
  std::mutex mutex_;
  std::atomic<std::int64_t> next_task_ = 0;
  std::atomic<std::size_t> next_shrink_ = 0;
  std::atomic<int> finished_workers_ = 0;
  std::atomic<bool> stop_ = false;
  std::exception_ptr error_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

bool KernelResult::is_as_expected() const {
  if (kernel->role == KernelRole::kernel) return verdict() == Verdict::passed;
  return failure && (kernel->killed_by.empty() || failure->law == kernel->killed_by);
}

Verdict KernelResult::verdict() const {
  if (failure) return Verdict::failed;
  if (cases == 0) return Verdict::unsupported;
  return cases == vacuous ? Verdict::vacuous : Verdict::passed;
}

std::vector<KernelResult> run_campaign(const std::vector<const KernelInfo*>& kernels,
                                       const CampaignOptions& options) {
  (void)all_kernels();  // sorts on first use: not something for several threads
  if (kernels.empty()) return {};
  return Campaign(kernels, options).run();
}

}  // namespace attest
