#include <algorithm>
#include <cmath>
#include <limits>

#include "core/inputs/random.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_batch_mates_irrelevant {

Case last_request_alone(const Run& run) {
  Case c = run.the_case();
  c.problem.batch = 1;
  return c;
}

/// One request of a batch as a batch of its own.
template <typename T>
Tensor<T> only(const Tensor<T>& from, std::int64_t request) {
  Shape shape = from.shape();
  shape[0] = 1;
  Tensor<T> to(shape);
  for (std::int64_t h = 0; h < shape[1]; ++h) {
    for (std::int64_t n = 0; n < shape[2]; ++n) {
      std::ranges::copy(from.row(request, h, n), to.row(0, h, n).begin());
    }
  }
  return to;
}

/// Every other request holds nothing but `value`.
Tensor<float> replaced_mates(Tensor<float> tensor, std::int64_t request, float value) {
  const Shape shape = tensor.shape();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1] && b != request; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) std::ranges::fill(tensor.row(b, h, n), value);
    }
  }
  return tensor;
}

/// Lengths and padding belong to an entry's place, so an entry cannot stand alone with its own.
bool depends_on_place(const Problem& problem) {
  return problem.length_seed != 0 || problem.padding_seed != 0;
}

Check check_alone(Run& run) {
  const std::int64_t last = run.problem().batch - 1;
  const auto last_only = [&](const auto& tensor) { return only(tensor, last); };
  const Inputs inputs = mapped(run.inputs(), last_only);
  const Case alone = last_request_alone(run);
  const Launch launch = run.launch(alone, inputs);
  Agreement agreement;
  if (!claims_same_bits(run, {.batch = true, .addresses = true})) {
    const Answer among_others = mapped(run.answer(), [&](const OutputAnswer& output) {
      return OutputAnswer{.value = {}, .bound = only(output.bound, last), .own_error = {}};
    });
    agreement = within_bounds(run.answer_to(alone.problem, alone.plan, inputs), among_others);
  }
  return check_agree(run.kernel(), launch.outputs, mapped(run.base().outputs, last_only), agreement,
                     "a request alone has another result than among others");
}

Check check_replaced(Run& run) {
  const std::int64_t request =
      random_below(run.the_case().inputs.seed, stream_batch_mates, 0, run.problem().batch);
  const float other =
      run.kernel().ignores_hidden_nan ? std::numeric_limits<float>::quiet_NaN() : 1.0F;
  const Launch launch =
      run.launch(run.the_case(), mapped(run.inputs(), [&](const Tensor<float>& tensor) {
                   return replaced_mates(tensor, request, other);
                 }));
  // Mates with other keys share no pages with the request.
  return check_agree(run.kernel(), launch.outputs, run.base().outputs,
                     agreement_of(run, {.sharing = true}),
                     "the values of other requests changed a request",
                     [=](OutputIndex, std::int64_t b, auto...) { return b == request; });
}

const LawRegistration registration{
    {.name = "batch_mates_irrelevant",
     .statement = "a request alone has the bits that it has among other requests, under one plan; "
                  "where lengths or padding tie it to its place, whatever the others hold",
     .cost = Law::Cost::more_launches,
     .applies =
         [](Run& run) {
           if (run.problem().batch == 1) return false;
           return depends_on_place(run.problem()) ||
                  !why_unsupported(run.kernel(), last_request_alone(run));
         },
     .check =
         [](Run& run) {
           return depends_on_place(run.problem()) ? check_replaced(run) : check_alone(run);
         }}};

}  // namespace law_batch_mates_irrelevant
}  // namespace attest
