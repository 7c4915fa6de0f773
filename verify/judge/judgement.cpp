#include "verify/judge/judgement.hpp"

#include "verify/judge/peer_rules.hpp"
#include "verify/judge/verdict.hpp"

namespace attest {
namespace {

void ask_peers(Run& run, Judgement& judgement) {
  const FrameworkAnswers framework = framework_answers(run.problem(), run.inputs());
  const PeerCase peer_case{run.problem(), run.the_case().plan, run.base().outputs, framework};
  for (std::size_t i = 0; i < peer_columns; ++i) {
    judgement.rejected[i] = !peer_rules()[i].accepts(peer_case);
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
    judgement.rejected[peer_columns + static_cast<std::size_t>(layer)] = true;
    judgement.laws.push_back(verdict.failure->law);
  }
}

}  // namespace

Judgement judge_by_rules(Run& run, Judges judges, const std::string& always) {
  Judgement judgement;
  ask_peers(run, judgement);
  if (judges == Judges::all_rules) ask_laws(run, always, judgement);
  return judgement;
}

}  // namespace attest
