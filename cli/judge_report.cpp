#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <utility>

#include "cli/judge.hpp"
#include "cli/output.hpp"

namespace attest {
namespace {

template <typename Value>
Json json_of(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json json_of(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

}  // namespace

double score_of(const Judged& judged) {
  if (!judged.is_compiled) return 0;
  const bool answers = judged.verdict != Verdict::crashed && judged.verdict != Verdict::timed_out;
  if (!answers || judged.cases == 0) return 0.1;
  if (!judged.exact.value_or(false)) return 0.2;
  if (!judged.bound.value_or(false)) return 0.4;
  if (!judged.statistics.value_or(true)) return 0.6;
  const bool is_timed = judged.is_time_confirmed.value_or(false);
  return judged.verdict == Verdict::passed && is_timed ? 1 : 0.8;
}

Json to_json(const Judged& judged) {
  return {{"task", judged.task},
          {"compiled", judged.is_compiled},
          {"exact", json_of(judged.exact)},
          {"bound", json_of(judged.bound)},
          {"statistics", json_of(judged.statistics)},
          {"time_ms", json_of(judged.time_ms)},
          {"time_confirmed", json_of(judged.is_time_confirmed)},
          {"floor_violated", json_of(judged.is_floor_violated)},
          {"verdict", std::string(name_of(judged.verdict))},
          {"score", score_of(judged)},
          {"reason", judged.reason},
          {"problem", json_of(judged.problem)},
          {"replay", json_of(judged.replay)},
          {"cases", judged.cases},
          {"flags", judged.flags},
          {"box", judged.box}};
}

std::string to_string(const Judged& judged) {
  const std::string words = judged.verdict == Verdict::passed         ? as_good("PASSED")
                            : judged.verdict == Verdict::inconclusive ? as_open("INCONCLUSIVE")
                                                                      : as_bad("FAILED");
  std::string text = fmt::format("task     {}   box {}\n", judged.task, judged.box);
  text += fmt::format("reason   {}\n", judged.reason);
  if (!judged.problem.empty()) text += fmt::format("problem  {}\n", judged.problem);
  if (judged.time_ms) {
    text += fmt::format("time     {:.4g} ms, {}confirmed\n", *judged.time_ms,
                        judged.is_time_confirmed.value_or(false) ? "" : "not ");
  }
  if (!judged.flags.empty()) text += fmt::format("flags    {}\n", fmt::join(judged.flags, "; "));
  if (!judged.replay.empty()) text += replay_line(judged.replay).substr(2);
  return text + fmt::format("{}, score {:g}, {} cases\n", words, score_of(judged), judged.cases);
}

std::string reason_of(const Failure& failure) {
  const Check& check = failure.check;
  std::string text = failure.kind == Verdict::failed
                         ? fmt::format("{}: {}", failure.law, check.detail)
                         : fmt::format("{}: {}", name_of(failure.kind), check.detail);
  if (check.has_element) {
    const double got = std::isnan(check.worst.got) ? std::abs(check.worst.got) : check.worst.got;
    text += fmt::format(
        "; {}{} is {:.9g}, exact is {:.9g}, a correct kernel errs by at most {:.3g}", check.tensor,
        to_string(check.worst.index), got, check.worst.want, check.worst.bound);
  }
  const InputSpec& inputs = failure.the_case.inputs;
  text += fmt::format(", where inputs are {}{}", inputs.family,
                      inputs.round_to_integers ? " rounded to integers" : "");
  if (!failure.repetition.empty()) text += "; " + failure.repetition;
  return text;
}

void set_layers(Judged& judged, const KernelResult& result) {
  const std::array<std::pair<Layer, std::optional<bool> Judged::*>, 3> layers{
      {{Layer::exact, &Judged::exact},
       {Layer::bound, &Judged::bound},
       {Layer::statistics, &Judged::statistics}}};
  if (result.failure && result.failure->kind != Verdict::failed) return;  // nothing was answered
  const Law* const law = result.failure ? find_law(result.failure->law) : nullptr;
  const Layer broken = law != nullptr ? law->layer : Layer::exact;
  for (const auto& [layer, member] : layers) {
    if (result.failure && layer == broken) {
      judged.*member = false;
      return;
    }
    if (result.checks_of(layer) > 0) judged.*member = true;
  }
}

}  // namespace attest
