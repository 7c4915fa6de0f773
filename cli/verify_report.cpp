#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <ranges>
#include <span>
#include <string>

#include "cli/output.hpp"
#include "cli/verify.hpp"
#include "core/base/counted.hpp"
#include "core/base/progress.hpp"
#include "verify/campaign/kernel_result.hpp"

namespace attest {
namespace {

/// `within_bound (bound)`: the law that decided, and its layer.
std::string decided_by(const Failure& failure) {
  if (failure.kind != Verdict::failed) return fmt::format("under {}", failure.law);
  const Law* law = find_law(failure.law);
  return fmt::format("by {} ({})", failure.law, law == nullptr ? "?" : name_of(law->layer));
}

bool is_planted(const KernelResult& result) {
  return result.kernel->role != KernelRole::kernel;
}

/// True if nothing failed and cases are missing: an interrupted campaign. A time limit asks for all
/// cases until it is over.
bool is_unfinished(const KernelResult& result, const CampaignOptions& campaign) {
  return !result.failure &&
         (campaign.time_limit || result.asked() < cases_of_shard(*result.kernel, campaign));
}

std::string outcome(const KernelResult& result, bool is_finished) {
  if (!is_finished) return as_open("not finished");
  const std::string verdict(name_of(result.verdict()));
  if (!is_planted(result)) {
    if (result.failure) return as_bad(fmt::format("{} {}", verdict, decided_by(*result.failure)));
    const std::string shown =
        result.verdict() == Verdict::passed ? as_good(verdict) : as_open(verdict);
    if (result.known.empty()) return shown;
    return fmt::format("{}, known finding {} in {}", shown,
                       fmt::join(result.known | std::views::keys, ", "),
                       counted(result.known_cases(), "case"));
  }
  const bool is_control = result.kernel->role == KernelRole::negative_control;
  return fmt::format(
      "{} {}{}", result.is_as_expected() ? as_good("killed, as it must be,") : as_bad("NOT KILLED"),
      result.failure ? decided_by(*result.failure) : "", is_control ? ", negative control" : "");
}

struct Column {
  std::string title;
  std::function<std::string(const KernelResult&)> text;
  std::string short_title = title;  ///< where a line would be too long
};

/// True if the kernel writes an output of that name, in every problem or in some that were judged.
bool gives(const KernelResult& result, std::string_view name) {
  const KernelInfo& kernel = *result.kernel;
  const auto outputs = kernel.operation->outputs();
  const auto at = std::ranges::find(outputs, name, &TensorSpec::name);
  if (at == outputs.end()) return false;
  const OutputIndex output{static_cast<std::size_t>(at - outputs.begin())};
  if (!is_optional(*kernel.operation, output)) return kernel.gives(output);
  return std::ranges::any_of(result.worst_over_bound,
                             [&](const auto& worst) { return worst.first == name; });
}

/// Largest error over its bound; `-` where the answer is the failure, or nothing was compared.
std::string worst_ratio(const KernelResult& result, std::string_view output) {
  const bool is_compared = gives(result, output) && result.checks_of(Layer::bound) > 0;
  if (result.failure || !is_compared) return "-";
  return fmt::format("{:.3f}", result.worst_over_bound.of(output));
}

/// Outputs of the operations of all kernels, one a name; of those that only some problems have,
/// what was judged.
std::vector<const TensorSpec*> outputs_of(const std::vector<KernelResult>& results) {
  std::vector<const TensorSpec*> outputs;
  for (const KernelResult& result : results) {
    const Operation& operation = *result.kernel->operation;
    for (std::size_t i = 0; i < operation.outputs().size(); ++i) {
      const TensorSpec& output = operation[OutputIndex{i}];
      if (is_optional(operation, OutputIndex{i}) && !gives(result, output.name)) continue;
      if (std::ranges::find(outputs, output.name, &TensorSpec::name) == outputs.end()) {
        outputs.push_back(&output);
      }
    }
  }
  return outputs;
}

std::vector<Column> columns_for(const std::vector<KernelResult>& results) {
  std::vector<Column> columns{
      {"cases", [](const KernelResult& r) { return std::to_string(r.cases); }}};
  for (const Layer layer : {Layer::exact, Layer::bound, Layer::statistics}) {
    columns.push_back({std::string(name_of(layer)), [layer](const KernelResult& r) {
                         return std::to_string(r.checks_of(layer));
                       }});
  }
  for (const TensorSpec* output : outputs_of(results)) {
    columns.push_back(
        {fmt::format("{}/bound", output->label),
         [name = std::string(output->name)](const KernelResult& r) { return worst_ratio(r, name); },
         std::string(output->label)});
  }
  const auto add_if_any = [&](std::string title, std::int64_t KernelResult::*count) {
    if (std::ranges::none_of(results, [=](const KernelResult& r) { return r.*count > 0; })) return;
    columns.push_back(
        {std::move(title), [=](const KernelResult& r) { return std::to_string(r.*count); }});
  };
  add_if_any("vacuous", &KernelResult::vacuous);
  add_if_any("crashed", &KernelResult::crashed);
  add_if_any("timed out", &KernelResult::timed_out);
  return columns;
}

/// Column of what kernels claim; batch_mates_irrelevant asks whether that is so.
Column batch_column() {
  return {"batch-invariant", [](const KernelResult& r) {
            if (!r.kernel->is_batch_invariant) return std::string("no");
            return std::string(r.kernel->plan_depends_on_batch ? "by Plan" : "yes");
          }};
}

/// Prints the claims of batches where the table has no room for their column: a line each that is
/// not `yes`.
void print_batch_claims(const std::vector<KernelResult>& results) {
  for (const KernelResult& result : results) {
    const std::string claim = batch_column().text(result);
    if (claim != "yes") fmt::print("{}: batch-invariant: {}\n", result.kernel->name, claim);
  }
}

/// Number of features that no case reached and no case of these kernels on this machine could: they
/// need others, as the features say.
std::ptrdiff_t out_of_reach(const Coverage& coverage) {
  return std::ranges::count_if(all_features(), [&](const Feature& feature) {
    const auto found = coverage.find(feature.name);
    return !feature.needs.empty() && (found == coverage.end() || found->second == 0);
  });
}

/// One line about features that no case reached; a few names, how many others, and where to find
/// them: with those that were reached they are all.
std::string unreached_line(const Coverage& coverage) {
  constexpr std::size_t most_named = 3;
  const std::vector<std::string> missed = unreached(coverage);
  const std::ptrdiff_t others = out_of_reach(coverage);
  if (missed.empty() && others == 0) return {};
  const std::size_t named = std::min(most_named, missed.size());
  std::string line =
      fmt::format("  not reached: {}", fmt::join(std::span(missed).first(named), ", "));
  if (missed.size() > named) line += fmt::format(" and {} more", missed.size() - named);
  if (others > 0) {
    line += fmt::format("{}{} that need other kernels, inputs or a GPU", missed.empty() ? "" : "; ",
                        others);
  }
  if (missed.size() > named || others > 0) line += " (--coverage names them)";
  return line + '\n';
}

PhaseTimes total_times(const std::vector<KernelResult>& results) {
  PhaseTimes total{};
  for (const KernelResult& result : results) {
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += result.seconds[i];
  }
  return total;
}

}  // namespace

std::string origin_of(std::int64_t failing_case, const std::vector<Regression>& regressions) {
  if (failing_case >= 0) return fmt::format("case {}", failing_case);
  const std::int64_t at = failing_case + std::ssize(regressions);
  return fmt::format(
      "{}, a counterexample of the past that every kernel gets (--no-regressions leaves them "
      "out)",
      regressions[static_cast<std::size_t>(at)].name);
}

void print_table(const std::vector<KernelResult>& results, const CampaignOptions& campaign,
                 bool is_complete) {
  std::size_t name_width = 6;
  for (const KernelResult& result : results) {
    name_width = std::max(name_width, result.kernel->name.size());
  }
  std::vector<Column> columns = columns_for(results);
  // Beside the ratios of three gradients its column would make lines of over 100 columns.
  const bool has_batch_column = outputs_of(results).size() <= 2;
  if (has_batch_column) columns.push_back(batch_column());
  std::vector<std::size_t> widths;
  const auto find_widths = [&] {
    widths.clear();
    for (const Column& column : columns) {
      std::size_t width = column.title.size();
      for (const KernelResult& result : results) {
        width = std::max(width, column.text(result).size());
      }
      widths.push_back(width);
    }
  };
  find_widths();
  // Columns stand closer where a line would have over 100: of gradients, with vacuous cases; and
  // those of ratios are called by their output alone with gradients of sinks and biases.
  constexpr std::size_t most_columns = 100, verdict_width = 8;
  const auto width_with = [&](std::size_t gap) {
    std::size_t sum = name_width + 6 + 2 + verdict_width;
    for (const std::size_t width : widths) sum += gap + width;
    return sum;
  };
  const bool is_short = width_with(1) > most_columns;
  if (is_short) {
    for (Column& column : columns) column.title = column.short_title;
    find_widths();
  }
  const std::string gap(width_with(2) <= most_columns ? 2 : 1, ' ');
  fmt::print("\n{:<{}}  on  ", "kernel", name_width);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    fmt::print("{}{:>{}}", gap, columns[i].title, widths[i]);
  }
  fmt::print("  verdict\n");
  for (const KernelResult& result : results) {
    fmt::print("{:<{}}  {:<4}", result.kernel->name, name_width, name_of(result.kernel->executor));
    for (std::size_t i = 0; i < columns.size(); ++i) {
      fmt::print("{}{:>{}}", gap, columns[i].text(result), widths[i]);
    }
    fmt::print("  {}\n", outcome(result, is_complete || !is_unfinished(result, campaign)));
  }
  if (is_short) fmt::print("columns of outputs: the largest error over its bound\n");
  if (!has_batch_column) print_batch_claims(results);
}

void print_shortfalls(const std::vector<KernelResult>& results, bool names_coverage) {
  // Of a few kernels one wants to read it; of all, a campaign of some cases a kernel has a page.
  constexpr std::ptrdiff_t most_kernels = 6;
  const std::ptrdiff_t untested = std::ranges::count_if(
      results, [](const KernelResult& result) { return !result.never_judged.empty(); });
  const bool names_claims = names_coverage || untested <= most_kernels;
  std::vector<std::string> lines;
  for (const KernelResult& result : results) {
    for (const std::string& line : shortfalls_of(result, names_claims)) {
      lines.push_back(fmt::format("{}: {}", result.kernel->name, line));
    }
  }
  if (!names_claims) {
    lines.push_back(fmt::format(
        "{} kernels claim something that no case of theirs tested: --coverage names it, more "
        "--cases or --thorough test more",
        untested));
  }
  if (!lines.empty()) fmt::print("\n{}\n", fmt::join(lines, "\n"));
}

void print_failures(const std::vector<KernelResult>& results, const VerifyOptions& options,
                    bool planted, const Counterexamples& kept) {
  for (const KernelResult& result : results) {
    if (!result.failure || is_planted(result) != planted) continue;
    fmt::print("\n{}, {} {}:\n{}", planted ? as_good("killed as it must be") : as_bad("FAILED"),
               result.is_shrunk ? "shrunk from" : "not shrunk,",
               origin_of(result.failing_case, options.campaign.regressions),
               describe(*result.failure, *result.kernel));
    fmt::print("{}", replay_of(*result.failure, kept));
  }
}

void print_summary(const std::vector<KernelResult>& results, double seconds, bool names_coverage) {
  std::int64_t cases = 0, regressions = 0, certified = 0;
  double worst_certificate = 0;
  Coverage coverage;
  for (const KernelResult& result : results) {
    for (const auto& [feature, count] : result.coverage) coverage[feature] += count;
    cases += result.cases;
    regressions += result.regressions;
    certified += result.certified_rows;
    worst_certificate = std::max(worst_certificate, result.worst_certificate);
  }
  fmt::print("\n{}, {} of them {}, in {}; time in", counted(cases, "case"), regressions,
             noun_behind(regressions, "past counterexample"), format_duration(seconds));
  const PhaseTimes times = total_times(results);
  const double total = std::accumulate(times.begin(), times.end(), 0.0);
  for (std::size_t i = 0; i < times.size(); ++i) {
    fmt::print("{} {} {:.0f} %", i == 0 ? "" : ",", phase_names[i],
               total > 0 ? 100 * times[i] / total : 0.0);
  }
  fmt::print(
      "\nthe f64 reference was certified by the oracle on {} (worst {:.3f} of its own error "
      "estimate)\n",
      counted(certified, "row"), worst_certificate);
  fmt::print("{}", to_string(coverage));
  const bool has_failed = std::ranges::any_of(
      results, [](const KernelResult& r) { return r.failure && !is_planted(r); });
  if (names_coverage) {
    fmt::print("{}", unreached_text(coverage));
  } else if (!has_failed) {  // a kernel that failed gets no later cases
    fmt::print("{}", unreached_line(coverage));
  }
}

Record record_of(const KernelResult& result, const VerifyOptions& options, double seconds,
                 const Provenance& provenance) {
  Record record;
  record.kind = "verify";
  record.verdict = name_of(result.verdict());
  record.labels = {{"kernel", result.kernel->name},
                   {"executor", std::string(name_of(result.kernel->executor))},
                   {"expected", result.is_as_expected() ? "yes" : "no"},
                   {"batch_invariant", result.kernel->is_batch_invariant ? "yes" : "no"},
                   {"seed", std::to_string(options.campaign.seed)},
                   {"shard", options.shard}};
  record.measurements = {
      {"cases", static_cast<double>(result.cases), "1"},
      {"regression_cases", static_cast<double>(result.regressions), "1"},
      {"cases_asked_for", static_cast<double>(result.asked()), "1"},
      {"drawn_cases", static_cast<double>(result.drawn), "1"},
      {"refused_cases", static_cast<double>(result.refusals.count()), "1"},
      {"judged_cases", static_cast<double>(result.cases - result.regressions), "1"},
      {"decided_cases", static_cast<double>(result.decided), "1"},
      {"vacuous_cases", static_cast<double>(result.vacuous), "1"},
      {"crashed_cases", static_cast<double>(result.crashed), "1"},
      {"timed_out_cases", static_cast<double>(result.timed_out), "1"},
      {"known_finding_cases", static_cast<double>(result.known_cases()), "1"},
      {"certified_reference_rows", static_cast<double>(result.certified_rows), "1"},
      {"worst_reference_error_over_own_estimate", result.worst_certificate, "1"},
      {"campaign_time", seconds, "s"}};
  for (const TensorSpec& output : result.kernel->operation->outputs()) {
    if (!gives(result, output.name)) continue;
    record.measurements.push_back({fmt::format("worst_{}_error_over_bound", output.name),
                                   result.worst_over_bound.of(output.name), "1"});
  }
  for (std::size_t i = 0; i < phase_names.size(); ++i) {
    record.measurements.push_back({fmt::format("time.{}", phase_names[i]), result.seconds[i], "s"});
  }
  for (const auto& [law, count] : result.checks) {
    record.measurements.push_back({"checks." + law, static_cast<double>(count), "1"});
  }
  for (const auto& [family, count] : result.families) {
    record.measurements.push_back({"cases." + family, static_cast<double>(count), "1"});
  }
  for (const Feature& feature : all_features()) {
    const auto found = result.coverage.find(feature.name);
    const std::int64_t count = found == result.coverage.end() ? 0 : found->second;
    record.measurements.push_back({"feature." + feature.name, static_cast<double>(count), "1"});
  }
  if (result.refusals.count() > 0) record.labels["refusal"] = result.refusals.most_frequent().text;
  if (!result.never_judged.empty()) {
    record.labels["never_judged"] = fmt::format("{}", fmt::join(result.never_judged, ", "));
  }
  for (const KnownFinding& finding : all_known_findings()) {
    if (result.known.contains(finding.id)) {
      std::string& label = record.labels["known_findings"];
      label +=
          fmt::format("{}{} {}", label.empty() ? "" : ", ", finding.id, finding.described_at());
    }
    if (result.not_reproduced.contains(finding.id)) {
      std::string& label = record.labels["findings_not_reproduced"];
      label += fmt::format("{}{} with {}", label.empty() ? "" : ", ", finding.id,
                           result.not_reproduced.at(finding.id));
    }
  }
  if (result.failure) {
    record.subject = result.failure->the_case;
    record.labels["law"] = result.failure->law;
    if (const Law* law = find_law(result.failure->law)) {
      record.labels["layer"] = name_of(law->layer);
    }
    record.labels["what"] = result.failure->check.detail;
  }
  record.provenance = provenance;
  return record;
}

}  // namespace attest
