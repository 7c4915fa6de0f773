#include "verify/campaign/shortfall.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "verify/cases/generators.hpp"

namespace attest {
namespace {

constexpr std::size_t most_claims_named = 6;

/// The kernel's most frequent sentence, without its own name in front.
std::string quoted(const KernelResult& result) {
  const Refusals::Sentence most = result.refusals.most_frequent();
  std::string_view text = most.text;
  const std::string name = result.kernel->name + ": ";
  if (text.starts_with(name)) text.remove_prefix(name.size());
  const bool is_only = most.count == result.refusals.count();
  return fmt::format("{}\"{}\"", is_only ? "" : fmt::format("{} of them: ", most.count), text);
}

std::string refusal_line(const KernelResult& result) {
  std::string text = fmt::format("{} drawn, {} refused", result.drawn, result.refusals.count());
  if (result.refusals.count() > 0) text += fmt::format(" ({})", quoted(result));
  text += fmt::format(", {} judged", result.cases - result.regressions);
  if (result.given_up > 0) {
    text += fmt::format("; {} of {} cases were given up after {} attempts each", result.given_up,
                        result.asked(), draw_attempts);
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

std::vector<std::string> shortfalls_of(const KernelResult& result) {
  std::vector<std::string> lines;
  if (result.kernel->role != KernelRole::kernel) return lines;
  const bool is_plugin = !result.kernel->plugin.empty();
  if (result.given_up > 0 || (is_plugin && result.refusals.count() > 0)) {
    lines.push_back(refusal_line(result));
  }
  if (result.asked() == 0 && !result.failure) {
    lines.push_back("inconclusive: no case was asked for; the shard or the time had none");
  } else if (result.verdict() == Verdict::inconclusive) {
    lines.push_back(fmt::format(
        "inconclusive: {} of {} cases were judged and not vacuous, a pass takes half{}",
        result.decided, result.asked(),
        result.vacuous > 0 ? fmt::format(" (vacuous: {})", result.vacuous_reason) : ""));
  }
  if (!result.never_judged.empty()) lines.push_back(claims_line(result.never_judged));
  return lines;
}

}  // namespace attest
