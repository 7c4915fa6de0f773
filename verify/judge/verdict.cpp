#include "verify/judge/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/glob.hpp"
#include "core/inputs/random.hpp"
#include "core/run/out_of_device_memory.hpp"
#include "core/run/registry.hpp"
#include "verify/judge/page_diagnosis.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace {

/// The laws to check, in order: those that read the base launch first, the surest layer first.
std::vector<const Law*> select(Run& run, const LawSelection& laws,
                               std::vector<std::string>& declined) {
  std::vector<const Law*> cheap;
  std::vector<const Law*> costly;
  for (const Law& law : all_laws()) {
    if (!law.is_about(run.problem())) continue;
    if (!matches_glob(law.name, laws.glob) || !laws.layers.contains(law.layer)) continue;
    const bool is_from_outside = !run.kernel().plugin.empty();
    if (const auto why = law.declines && is_from_outside ? law.declines(run) : std::nullopt) {
      declined.push_back(fmt::format("{}: {}", law.name, *why));
      continue;
    }
    if (law.applies && !law.applies(run)) continue;
    (law.cost == Law::Cost::base_launch ? cheap : costly).push_back(&law);
  }
  std::ranges::stable_sort(cheap, {}, &Law::layer);
  if (laws.every_law) {
    cheap.insert(cheap.end(), costly.begin(), costly.end());
  } else if (!costly.empty()) {
    cheap.push_back(costly[static_cast<std::size_t>(
        random_below(run.the_case().inputs.seed, stream_costly_law, 0,
                     static_cast<std::int64_t>(costly.size())))]);
  }
  return cheap;
}

/// Law that decided, and its layer.
std::string law_of(const Failure& failure) {
  if (failure.kind != Verdict::failed) {
    return fmt::format("none: {} while {} was checked", name_of(failure.kind), failure.law);
  }
  const Law* law = find_law(failure.law);
  return law == nullptr ? failure.law
                        : fmt::format("{} ({} layer)", failure.law, name_of(law->layer));
}

}  // namespace

void refuse(CaseVerdict& verdict, const KernelError& error, const Case& c) {
  verdict.verdict = Verdict::failed;
  verdict.failure =
      Failure{.law = std::string(error_law), .the_case = c, .check = Check::failed(error.what())};
}

namespace {

void judge(Run& run, const LawSelection& laws, CaseVerdict& verdict) {
  const Case& c = run.the_case();
  if (const auto reason = why_unsupported(run.kernel(), c)) {
    verdict.verdict = Verdict::unsupported;
    verdict.reason = *reason;
    return;
  }
  for (const Law* law : select(run, laws, verdict.declined)) {
    run.clock().set_law(law->name);
    verdict.checked_laws.push_back(law->name);
    const Check check = law->check(run);
    if (law->layer == Layer::bound && check.has_element && check.worst.bound > 0) {
      const auto outputs = c.problem.operation->outputs();
      const auto output = std::ranges::find(outputs, check.tensor, &TensorSpec::label);
      if (output != outputs.end()) verdict.worst_over_bound.raise(output->name, check.worst.ratio);
    }
    if (check.status == Check::Status::declined) {
      verdict.checked_laws.pop_back();
      verdict.declined.push_back(fmt::format("{}: {}", law->name, check.detail));
      continue;
    }
    if (check.status == Check::Status::failed) {
      verdict.verdict = Verdict::failed;
      verdict.failure = Failure{.law = law->name, .the_case = c, .check = check};
      return;
    }
    if (check.status == Check::Status::vacuous) {
      verdict.verdict = Verdict::vacuous;
      verdict.reason = check.detail;
    }
  }
}

}  // namespace

CaseVerdict verify_case(Run& run, const LawSelection& laws) {
  CaseVerdict verdict;
  try {
    judge(run, laws, verdict);
    if (laws.asks_misreadings && verdict.failure) {
      verdict.failure->misreadings = misreadings_of(run);
    }
  } catch (const KernelError& error) {
    refuse(verdict, error, run.the_case());
  } catch (const OutOfDeviceMemory& error) {
    // Whatever laws were asked before: the case is drawn again, or said to be none for this device.
    verdict = CaseVerdict{};
    verdict.verdict = Verdict::unsupported;
    verdict.reason = error.what();
  }
  return verdict;
}

std::string describe(const Failure& failure, const KernelInfo& kernel) {
  const Case& c = failure.the_case;
  std::string text = fmt::format(
      "  law      {}\n  kernel   {} on {}\n  problem  {}\n  plan     {}   layouts {}\n  inputs   "
      "{} x{}{}, seed {}\n  what     {}\n",
      law_of(failure), kernel.name, name_of(kernel.executor), to_string(c.problem),
      to_string(c.plan), to_string(c.layouts, *c.problem.operation), c.inputs.family,
      c.inputs.magnitude, c.inputs.round_to_integers ? " rounded to integers" : "", c.inputs.seed,
      failure.check.detail);
  if (failure.check.has_element) {
    const WorstElement& worst = failure.check.worst;
    // abs: the sign of a NaN says nothing.
    const double got = std::isnan(worst.got) ? std::abs(worst.got) : worst.got;
    text += fmt::format("  worst    {}{}: got {:.9g}, want {:.17g}, bound {:.3g}",
                        failure.check.tensor, to_string(worst.index), got, worst.want, worst.bound);
    if (worst.bound > 0 && std::isfinite(worst.ratio)) {
      text += fmt::format(", {:.3g} times the bound", worst.ratio);
    }
    text += '\n';
  }
  if (c.layouts.paging.is_used()) {
    text += fmt::format("  pages    {}\n", page_form(c.layouts.paging));
  }
  if (!failure.misreadings.empty()) {
    text += fmt::format("  as if    {}\n", fmt::join(failure.misreadings, ", or "));
  }
  if (!failure.repetition.empty()) text += fmt::format("  repeat   {}\n", failure.repetition);
  if (!failure.shrinking.empty()) text += fmt::format("  shrunk   {}\n", failure.shrinking);
  return text;
}

}  // namespace attest
