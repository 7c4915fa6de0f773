#include <algorithm>

#include "verify/property.hpp"

namespace attest {
namespace {

Case last_request_alone(const Run& run) {
  Case c = run.the_case();
  c.problem.batch = 1;
  return c;
}

/// The last request of a batch as a batch of its own.
Tensor<float> last_of(const Tensor<float>& from) {
  Shape shape = from.shape();
  const std::int64_t last = shape[0] - 1;
  shape[0] = 1;
  Tensor<float> to(shape);
  for (std::int64_t h = 0; h < shape[1]; ++h) {
    for (std::int64_t n = 0; n < shape[2]; ++n) {
      std::ranges::copy(from.row(last, h, n), to.row(0, h, n).begin());
    }
  }
  return to;
}

const PropertyRegistration registration{
    {.name = "batch_mates_irrelevant",
     .statement = "a request alone has the bits that it has among other requests, under one plan",
     .cost = Property::Cost::more_launches,
     .applies =
         [](Run& run) {
           const Case c = last_request_alone(run);
           return run.problem().batch > 1 && run.kernel().is_deterministic &&
                  !why_unsupported(run.kernel(), c);
         },
     .check =
         [](Run& run) {
           const Inputs& in = run.inputs();
           const Launch alone =
               run.launch(last_request_alone(run),
                          {.q = last_of(in.q), .k = last_of(in.k), .v = last_of(in.v)});
           const Outputs& base = run.base().outputs;
           return check_same_bits(alone.outputs, {.o = last_of(base.o), .lse = last_of(base.lse)},
                                  "a request alone has other bits than among others");
         }}};

}  // namespace
}  // namespace attest
