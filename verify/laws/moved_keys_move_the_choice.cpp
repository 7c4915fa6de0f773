#include "core/operations/select.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/variation.hpp"

namespace attest {
namespace law_moved_keys_move_the_choice {

/// Keys in reverse; without a mask, lengths and padding, which hang on their places.
Inputs with_reversed_keys(Inputs inputs) {
  const Tensor<float>& keys = inputs[selecting::k];
  inputs[selecting::k] =
      gathered(keys, keys.shape(), [count = keys.shape()[2]](auto b, auto h, auto n) {
        return RowPlace{b, h, count - 1 - n};
      });
  return inputs;
}

/// The lists with the numbers that their keys had before.
Outputs moved_back(const Problem& problem, Outputs outputs) {
  const auto last = static_cast<float>(problem.key_len - 1);
  for (float& key : outputs[selecting::keys].values()) {
    if (key != selecting::no_key) key = last - key;
  }
  select_operation.canonical(problem, outputs);
  return outputs;
}

const LawRegistration registration{
    {.name = "moved_keys_move_the_choice",
     .statement = "keys in reverse are chosen by their new numbers: the same set within the bounds",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&select_operation},
     .applies =
         [](Run& run) {
           const Problem& p = run.problem();
           return p.mask == Mask::none && p.length_seed == 0 && p.padding_seed == 0 &&
                  p.key_len > 1;
         },
     .check =
         [](Run& run) {
           const Launch launch = run.launch(run.the_case(), with_reversed_keys(run.inputs()));
           return check_agree(run.kernel(), moved_back(run.problem(), launch.outputs),
                              run.base().outputs, within_bounds(run.answer(), run.answer()),
                              "keys in reverse are another choice");
         }}};

}  // namespace law_moved_keys_move_the_choice
}  // namespace attest
