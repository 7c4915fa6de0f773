#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_nan_of_epilogue_stays {

/// An element of the gate or the residual that is an element of O, drawn by the case's seed.
struct Spot {
  InputIndex input;
  Shape at;
};

bool has_rows(const Problem& problem) {
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    if (problem.query_len_of(b) > 0) return true;
  }
  return false;
}

Spot drawn_spot(const Run& run) {
  const Problem& problem = run.problem();
  std::uint64_t index = 0;
  const auto draw = [&](std::int64_t below) {
    return random_below(run.the_case().inputs.seed, stream_nan_epilogue, index++, below);
  };
  std::vector<InputIndex> inputs;
  if (problem.gate == OutputGate::given) inputs.push_back(forward::gate);
  if (problem.residual == Residual::given) inputs.push_back(forward::residual);
  std::vector<std::int64_t> entries;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    if (problem.query_len_of(b) > 0) entries.push_back(b);
  }
  const InputIndex input = inputs[static_cast<std::size_t>(draw(std::ssize(inputs)))];
  const std::int64_t b = entries[static_cast<std::size_t>(draw(std::ssize(entries)))];
  return {
      input,
      {b, draw(problem.query_heads), draw(problem.query_len_of(b)), draw(problem.output_dim())}};
}

const LawRegistration registration{
    {.name = "nan_of_epilogue_stays",
     .statement =
         "a NaN in the gate or the residual makes NaN of its own element of O, and changes "
         "no other bit",
     .cost = Law::Cost::more_launches,
     .operations = {&forward_operation},
     .applies = [](Run& run) { return has_epilogue(run.problem()) && has_rows(run.problem()); },
     .check =
         [](Run& run) {
           const auto [input, at] = drawn_spot(run);
           const auto [b, h, n, d] = at;
           Inputs inputs = run.inputs();
           inputs[input].at(b, h, n, d) = std::numeric_limits<float>::quiet_NaN();
           const Launch launch = run.launch(run.the_case(), inputs);
           if (const float got = launch.outputs[forward::o].at(b, h, n, d); !std::isnan(got)) {
             return Check::failed_at(
                 "O", {.index = at, .got = got, .want = std::numeric_limits<double>::quiet_NaN()},
                 "a NaN of the gate or the residual was swallowed");
           }
           return check_agree(run.kernel(), launch.outputs, run.base().outputs,
                              agreement_of(run, {}),
                              "a NaN of the gate or the residual reached another element",
                              [&](OutputIndex output, auto... place) {
                                return output != forward::o || Shape{place...} != at;
                              });
         }}};

}  // namespace law_nan_of_epilogue_stays
}  // namespace attest
