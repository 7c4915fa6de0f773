// A family of inputs: a way to fill Q, K and V that shows a bug which others hide. Here every score
// of a row is larger than all before it, so an online softmax rescales at every tile.
#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace tutorial_inputs {

/// Values in double: make_inputs() rounds them to the problem's format. All of Q is 1, key n is n
/// in its first column and 0 elsewhere, V is N(0, 1).
Inputs staircase(const Problem& problem, const InputSpec& spec) {
  Inputs inputs;
  for (const InputIndex input : {forward::q, forward::k, forward::v}) {
    inputs[input] = Tensor<float>(forward_operation[input].shape(problem));
  }
  for (float& x : inputs[forward::q].values()) x = 1;
  const Shape keys = inputs[forward::k].shape();
  for (std::int64_t b = 0; b < keys[0]; ++b) {
    for (std::int64_t h = 0; h < keys[1]; ++h) {
      for (std::int64_t n = 0; n < keys[2]; ++n) {
        inputs[forward::k].at(b, h, n, 0) =
            static_cast<float>(spec.magnitude * static_cast<double>(n));
      }
    }
  }
  std::uint64_t index = 0;
  for (float& x : inputs[forward::v].values()) {
    x = static_cast<float>(random_normal(spec.seed, 0, index++));
  }
  return inputs;
}

[[maybe_unused]] const bool is_registered = [] {
  add_input_family({.name = "staircase",
                    .summary = "every key scores higher than all before it",
                    .magnitudes = {1, 8},
                    .make = staircase,
                    .unsupported = {}});
  return true;
}();

}  // namespace tutorial_inputs
}  // namespace attest
