#include "verify/judge/judgement.hpp"

#include <array>
#include <span>

#include "verify/judge/framework_answers.hpp"
#include "verify/judge/peer_rules.hpp"
#include "verify/judge/run.hpp"
#include "verify/judge/verdict.hpp"

namespace attest {
namespace {

struct OurColumn {
  std::string_view name, head;
};
constexpr std::array<OurColumn, 3> our_layers{
    {{"exact laws", "exact"}, {"bound", "bound"}, {"statistics", "stat"}}};

void ask_peers(Run& run, Judgement& judgement) {
  const std::span<const PeerRule> rules = peer_rules(*run.problem().operation);
  if (rules.empty()) return;
  const FrameworkAnswers framework = framework_answers(run.problem(), run.inputs());
  const PeerCase peer_case{run.problem(), run.the_case().plan, run.base().outputs, framework};
  for (std::size_t i = 0; i < rules.size(); ++i) {
    judgement.rejected[i] = !rules[i].accepts(peer_case);
  }
}

/// Layer by layer, so that each is asked whatever the others say.
void ask_laws(Run& run, const std::string& always, Judgement& judgement) {
  for (const Layer layer : {Layer::exact, Layer::bound, Layer::statistics}) {
    CaseVerdict verdict = verify_case(run, {.layers = {layer}});
    if (!verdict.failure) {
      verdict = verify_case(run, {.glob = always, .layers = {layer}, .every_law = true});
    }
    if (!verdict.failure) continue;
    const std::size_t peers = peer_columns(*run.problem().operation);
    judgement.rejected[peers + static_cast<std::size_t>(layer)] = true;
    judgement.laws.push_back(verdict.failure->law);
  }
}

}  // namespace

std::size_t peer_columns(const Operation& operation) {
  return peer_rules(operation).size();
}

std::size_t matrix_columns(const Operation& operation) {
  return peer_columns(operation) + our_layers.size();
}

std::string_view column_name(const Operation& operation, std::size_t column) {
  const std::span<const PeerRule> peers = peer_rules(operation);
  return column < peers.size() ? peers[column].name : our_layers.at(column - peers.size()).name;
}

std::string_view column_head(const Operation& operation, std::size_t column) {
  const std::span<const PeerRule> peers = peer_rules(operation);
  return column < peers.size() ? peers[column].head : our_layers.at(column - peers.size()).head;
}

Judgement judge_by_rules(Run& run, Judges judges, const std::string& always) {
  Judgement judgement{.rejected =
                          std::vector<bool>(matrix_columns(*run.problem().operation), false)};
  ask_peers(run, judgement);
  if (judges == Judges::all_rules) ask_laws(run, always, judgement);
  return judgement;
}

}  // namespace attest
