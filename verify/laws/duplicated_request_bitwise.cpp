#include <algorithm>

#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_duplicated_request_bitwise {

/// The case with two requests in its batch.
Case with_two_requests(const Run& run) {
  Case c = run.the_case();
  c.problem.batch = 2;
  // A gap between requests costs nothing in a batch of one, and may be 2^31 elements.
  c.layouts = {};
  c.layouts.paging = run.the_case().layouts.paging;
  return c;
}

/// The last request of the batch, twice.
Tensor<float> doubled(const Tensor<float>& from) {
  Shape shape = from.shape();
  const std::int64_t last = shape[0] - 1;
  shape[0] = 2;
  Tensor<float> to(shape);
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        std::ranges::copy(from.row(last, h, n), to.row(b, h, n).begin());
      }
    }
  }
  return to;
}

const LawRegistration registration{
    {.name = "duplicated_request_bitwise",
     .statement = "a request that stands in the batch twice has the same bits twice",
     .cost = Law::Cost::more_launches,
     .applies =
         [](Run& run) {
           // Lengths and padding of two places differ.
           if (run.problem().length_seed != 0 || run.problem().padding_seed != 0) return false;
           const Case c = with_two_requests(run);
           return !why_unsupported(run.kernel(), c);
         },
     .check =
         [](Run& run) {
           const Case twice = with_two_requests(run);
           const Inputs inputs = mapped(run.inputs(), doubled);
           const Launch launch = run.launch(twice, inputs);
           const Agreement agreement = agreement_of(run, {.batch = true, .addresses = true}, [&] {
             return run.answer_to(twice.problem, twice.plan, inputs);
           });
           return check_agree(run.kernel(), launch.outputs, mapped(launch.outputs, doubled),
                              agreement, "two equal requests of one batch have different results");
         }}};

}  // namespace law_duplicated_request_bitwise
}  // namespace attest
