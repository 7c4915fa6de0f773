#include <algorithm>

#include "verify/property.hpp"

namespace attest {
namespace {

/// Batch and heads in reverse; query heads keep their key/value head.
Tensor<float> reversed(const Tensor<float>& from) {
  Tensor<float> to(from.shape());
  const Shape shape = from.shape();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        std::ranges::copy(from.row(b, h, n), to.row(shape[0] - 1 - b, shape[1] - 1 - h, n).begin());
      }
    }
  }
  return to;
}

const PropertyRegistration registration{
    {.name = "permuted_heads_bitwise",
     .statement = "permuting batch and heads permutes O and LSE bit for bit",
     .cost = Property::Cost::more_launches,
     .applies = [](Run& run) { return run.problem().batch * run.problem().query_heads > 1; },
     .check =
         [](Run& run) {
           const Inputs& inputs = run.inputs();
           const Launch launch = run.launch(
               run.the_case(),
               {.q = reversed(inputs.q), .k = reversed(inputs.k), .v = reversed(inputs.v)});
           return check_same_bits(
               {.o = reversed(launch.outputs.o), .lse = reversed(launch.outputs.lse)},
               run.base().outputs, "with batch and heads reversed, a head's result has other bits");
         }}};

}  // namespace
}  // namespace attest
