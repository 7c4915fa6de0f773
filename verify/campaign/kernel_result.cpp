#include "verify/campaign/kernel_result.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "core/base/counted.hpp"
#include "core/base/error.hpp"
#include "core/records/case_json.hpp"
#include "core/run/registry.hpp"
#include "verify/cases/claimed.hpp"
#include "verify/cases/generators.hpp"
#include "verify/workers/worker_protocol.hpp"

namespace attest {
namespace {

constexpr std::size_t most_claims_named = 6;
constexpr std::size_t most_sentences_quoted = 4;

/// The kernel's most frequent sentences with their counts, without its own name in front.
std::string quoted(const KernelResult& result, const Refusals& refusals) {
  const std::vector<Refusals::Sentence> sentences = refusals.by_count();
  const std::string name = result.kernel->name + ": ";
  std::vector<std::string> parts;
  std::int64_t left = refusals.count();
  for (const Refusals::Sentence& sentence : sentences) {
    if (parts.size() == most_sentences_quoted) break;
    std::string_view text = sentence.text;
    if (text.starts_with(name)) text.remove_prefix(name.size());
    const bool is_only = sentence.count == refusals.count();
    const std::string count =
        is_only ? "" : fmt::format("{}{}: ", sentence.count, parts.empty() ? " of them" : "");
    parts.push_back(fmt::format("{}\"{}\"", count, text));
    left -= sentence.count;
  }
  if (left > 0) parts.push_back(fmt::format("and {}", counted(left, "other")));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string refusal_line(const KernelResult& result) {
  std::string text = fmt::format("{} drawn, {} refused", result.drawn, result.refusals.count());
  if (result.refusals.count() > 0) text += fmt::format(" ({})", quoted(result, result.refusals));
  text += fmt::format(", {} judged", result.cases - result.regressions);
  if (result.given_up > 0) {
    text += fmt::format("; {} of {} given up after {} attempts each", result.given_up,
                        counted(result.asked(), "case"), draw_attempts);
  }
  return text;
}

std::string claims_line(const std::vector<std::string>& claims) {
  const std::size_t named = std::min(claims.size(), most_claims_named);
  std::string text =
      fmt::format("claimed and not tested: {}", fmt::join(std::span(claims).first(named), ", "));
  if (claims.size() > named) text += fmt::format(", and {} more", claims.size() - named);
  return text;
}

}  // namespace

std::vector<std::string> shortfalls_of(const KernelResult& result, bool names_claims) {
  std::vector<std::string> lines;
  if (result.kernel->role != KernelRole::kernel) return lines;
  const bool is_plugin = !result.kernel->plugin.empty();
  if (result.given_up > 0 || (is_plugin && result.refusals.count() > 0)) {
    lines.push_back(refusal_line(result));
  }
  if (result.declined.count() > 0) {
    lines.push_back(fmt::format("{} a law could not be asked ({})",
                                counted(result.declined.count(), "time"),
                                quoted(result, result.declined)));
  }
  if (result.asked() == 0 && !result.failure) {
    lines.push_back("inconclusive: no case was asked for; the shard or the time had none");
  } else if (result.unchecked == result.asked() && !result.failure) {
    lines.push_back(fmt::format("inconclusive: no law that was asked for applied to any of its {}",
                                counted(result.asked(), "case")));
  } else if (result.verdict() == Verdict::inconclusive) {
    lines.push_back(fmt::format(
        "inconclusive: {} of {} judged and not vacuous, a pass takes half{}", result.decided,
        counted(result.asked(), "case"),
        result.vacuous > 0 ? fmt::format(" (vacuous: {})", result.vacuous_reason) : ""));
  }
  if (names_claims && !result.never_judged.empty())
    lines.push_back(claims_line(result.never_judged));
  return lines;
}

void DoneTasks::insert(std::int64_t task) {
  beyond.insert(task);
  while (!beyond.empty() && *beyond.begin() <= below) {
    if (*beyond.begin() == below) ++below;
    beyond.erase(beyond.begin());
  }
}

void KernelResult::add(const Case& c, const CaseAnswer& answer, std::int64_t index,
                       const KnownFinding* known_as) {
  const CaseVerdict& judged = answer.verdict;
  ++cases;
  if (index < 0) ++regressions;
  ++families[c.inputs.family];
  for (const std::string& feature : features_of(*kernel, c)) ++coverage[feature];
  for (const std::string& law : judged.checked_laws) ++checks[law];
  for (const std::string& law : judged.declined) declined.add(law);
  certified_rows += answer.certificate.rows;
  worst_certificate = std::max(worst_certificate, answer.certificate.worst_ratio);
  if (judged.verdict == Verdict::vacuous && vacuous++ == 0) vacuous_reason = judged.reason;
  if (judged.verdict == Verdict::crashed) ++crashed;
  if (judged.verdict == Verdict::timed_out) ++timed_out;
  const bool is_unchecked = judged.verdict == Verdict::passed && judged.checked_laws.empty();
  if (is_unchecked && index >= 0) ++unchecked;
  if (judged.verdict == Verdict::passed && !is_unchecked) {
    facts.merge(facts_of(c));
    if (index >= 0) {
      ++decided;
      if (!example || index < example_index) {
        example = c;
        example_index = index;
      }
    }
  }
  if (!judged.failure) {
    worst_over_bound.raise(judged.worst_over_bound);
  } else if (known_as != nullptr) {
    KnownFailures& same = known[known_as->id];
    if (same.cases++ == 0 || index < same.failing_case) {
      same.failure = *judged.failure;
      same.failing_case = index;
      same.library = answer.library;
    }
  } else if (!failure || index < failing_case) {
    failure = judged.failure;
    failing_case = index;
  }
}

void KernelResult::set_shrunk(const KnownFinding& finding, const Failure& smallest) {
  const auto same = known.find(finding.id);
  if (same == known.end()) return;
  if (finding.explains(*kernel, smallest)) {
    same->second.failure = smallest;
    same->second.is_shrunk = true;
    return;
  }
  if (!failure || same->second.failing_case < failing_case) {
    failure = smallest;
    failing_case = same->second.failing_case;
    is_shrunk = true;
  }
  known.erase(same);
}

std::int64_t KernelResult::known_cases() const {
  std::int64_t count = 0;
  for (const auto& [id, same] : known) count += same.cases;
  return count;
}

bool KernelResult::is_as_expected() const {
  if (kernel->role == KernelRole::kernel) return verdict() == Verdict::passed;
  if (!failure) return false;
  if (kernel->killed_by.empty()) return true;
  // What a guard would show is a crash where the buffer ends at a page that cannot be touched.
  if (failure->kind == Verdict::crashed && kernel->killed_by == "guards_untouched") return true;
  return failure->kind == Verdict::failed ? failure->law == kernel->killed_by
                                          : name_of(failure->kind) == kernel->killed_by;
}

Verdict KernelResult::verdict() const {
  if (failure) return failure->kind;
  return decided > 0 && 2 * decided >= asked() - unchecked ? Verdict::passed
                                                           : Verdict::inconclusive;
}

std::int64_t KernelResult::checks_of(Layer layer) const {
  std::int64_t count = 0;
  for (const auto& [name, checked] : checks) {
    const Law* law = find_law(name);
    if (law != nullptr && law->layer == layer) count += checked;
  }
  return count;
}

Verdict campaign_verdict(const std::vector<KernelResult>& results) {
  Verdict verdict = Verdict::passed;
  for (const KernelResult& result : results) {
    if (result.is_as_expected()) continue;
    const bool is_open = result.kernel->role == KernelRole::kernel && !result.failure;
    if (!is_open) return Verdict::failed;
    verdict = Verdict::inconclusive;
  }
  return verdict;
}

namespace {

Json known_json(const KernelResult& result) {
  Json json = Json::object();
  for (const auto& [id, same] : result.known) {
    json[id] = {{"failure", failure_json(same.failure)},
                {"failing_case", same.failing_case},
                {"is_shrunk", same.is_shrunk},
                {"cases", same.cases},
                {"library", same.library}};
  }
  return json;
}

KnownFailures known_from(const Json& json) {
  return {.failure = failure_from_json(json.at("failure")),
          .failing_case = json.at("failing_case"),
          .is_shrunk = json.at("is_shrunk"),
          .cases = json.at("cases"),
          .library = json.at("library")};
}

}  // namespace

Json to_json(const KernelResult& result) {
  Json json = {{"kernel", result.kernel->name},
               {"executor", name_of(result.kernel->executor)},
               {"cases", result.cases},
               {"regressions", result.regressions},
               {"vacuous", result.vacuous},
               {"unchecked", result.unchecked},
               {"crashed", result.crashed},
               {"timed_out", result.timed_out},
               {"vacuous_reason", result.vacuous_reason},
               {"decided", result.decided},
               {"drawn", result.drawn},
               {"refusals", result.refusals.to_json()},
               {"declined", result.declined.to_json()},
               {"given_up", result.given_up},
               {"checks", result.checks},
               {"families", result.families},
               {"coverage", result.coverage},
               {"worst_over_bound", worst_json(result.worst_over_bound)},
               {"certified_rows", result.certified_rows},
               {"worst_certificate", number_json(result.worst_certificate)},
               {"seconds", result.seconds},
               {"failing_case", result.failing_case},
               {"is_shrunk", result.is_shrunk},
               {"known", known_json(result)},
               {"not_reproduced", result.not_reproduced},
               {"done_below", result.done.below},
               {"done_beyond", result.done.beyond},
               {"facts", result.facts},
               {"example_index", result.example_index},
               {"never_judged", result.never_judged}};
  if (result.example) json["example"] = case_json(*result.example);
  if (result.failure) json["failure"] = failure_json(*result.failure);
  return json;
}

KernelResult kernel_result_from_json(const Json& json) {
  KernelResult result;
  const std::string name = json.at("kernel");
  const std::string executor = json.at("executor");
  if (const auto known = executor_from_name(executor)) result.kernel = find_kernel(name, *known);
  if (result.kernel == nullptr) {
    throw InvalidInput(
        fmt::format("no kernel '{}' for executor {}; see attest list kernels", name, executor));
  }
  result.cases = json.at("cases");
  result.regressions = json.at("regressions");
  result.vacuous = json.at("vacuous");
  result.unchecked = json.at("unchecked");
  result.crashed = json.at("crashed");
  result.timed_out = json.at("timed_out");
  result.vacuous_reason = json.at("vacuous_reason");
  result.decided = json.at("decided");
  result.drawn = json.at("drawn");
  result.refusals = Refusals::from_json(json.at("refusals"));
  result.declined = Refusals::from_json(json.at("declined"));
  result.given_up = json.at("given_up");
  json.at("checks").get_to(result.checks);
  json.at("families").get_to(result.families);
  json.at("coverage").get_to(result.coverage);
  result.worst_over_bound = worst_from_json(json.at("worst_over_bound"));
  result.certified_rows = json.at("certified_rows");
  result.worst_certificate = number_from_json(json.at("worst_certificate"));
  json.at("seconds").get_to(result.seconds);
  result.failing_case = json.at("failing_case");
  result.is_shrunk = json.at("is_shrunk");
  for (const auto& [id, same] : json.at("known").items()) result.known[id] = known_from(same);
  json.at("not_reproduced").get_to(result.not_reproduced);
  result.done.below = json.at("done_below");
  json.at("done_beyond").get_to(result.done.beyond);
  json.at("facts").get_to(result.facts);
  result.example_index = json.at("example_index");
  json.at("never_judged").get_to(result.never_judged);
  if (json.contains("example")) {
    result.example = case_from(json.at("example"), "an example");
  }
  if (json.contains("failure")) result.failure = failure_from_json(json.at("failure"));
  return result;
}

}  // namespace attest
