#include <algorithm>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_single_queries_equal_rows {

std::int64_t drawn_query(const Run& run) {
  return random_below(run.the_case().inputs.seed, stream_single_query, 0, run.problem().query_len);
}

/// Rows [first, first + count).
template <typename T>
Tensor<T> rows_from(const Tensor<T>& from, std::int64_t first, std::int64_t count) {
  Shape shape = from.shape();
  shape[2] = count;
  Tensor<T> to(shape);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < count; ++n) {
        std::ranges::copy(from.row(b, h, first + n), to.row(b, h, n).begin());
      }
    }
  }
  return to;
}

/// The drawn query alone with the keys up to its diagonal: a step of decoding.
Case single_step(const Run& run) {
  Case c = run.the_case();
  c.problem.key_len += drawn_query(run) + 1 - c.problem.query_len;
  c.problem.query_len = 1;
  c.layouts = {};  // a gap between rows that are gone may be 2^31 elements
  c.layouts.paging = run.the_case().layouts.paging;
  return c;
}

Check check_step(Run& run) {
  const Case step = single_step(run);
  const std::int64_t query = drawn_query(run), keys = step.problem.key_len;
  const Inputs& all = run.inputs();
  const Inputs inputs{rows_from(all[forward::q], query, 1), rows_from(all[forward::k], 0, keys),
                      rows_from(all[forward::v], 0, keys)};
  const Launch alone = run.launch(step, inputs);
  const auto row_of = [&](const auto& tensor) { return rows_from(tensor, query, 1); };
  Agreement agreement;
  if (!claims_same_bits(run, {.addresses = true, .neighbours = true, .queries = true})) {
    const Answer among_others = mapped(run.answer(), [&](const OutputAnswer& output) {
      return OutputAnswer{.value = {}, .bound = row_of(output.bound), .own_error = {}};
    });
    agreement = within_bounds(run.answer_to(step.problem, step.plan, inputs), among_others);
  }
  return check_agree(run.kernel(), mapped(run.base().outputs, row_of), alone.outputs, agreement,
                     "a query alone has another answer than among others");
}

const LawRegistration registration{
    {.name = "single_queries_equal_rows",
     .statement = "a row of a prefill or of several queries under a causal mask that ends at the "
                  "last key is the answer of its query alone with the keys up to its own: in bits "
                  "where the kernel says so, else within the sum of the bounds",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&forward_operation},
     .applies =
         [](Run& run) {
           const Problem& p = run.problem();
           if (p.mask != Mask::causal_bottom_right && p.mask != Mask::window_bottom_right)
             return false;
           // A window that looks ahead needs keys that a step does not have.
           if (is_window(p.mask) && p.window.right != 0) return false;
           return p.query_len > 1 && p.key_len >= p.query_len && p.length_seed == 0 &&
                  p.padding_seed == 0 && !why_unsupported(run.kernel(), single_step(run));
         },
     .check = check_step}};

}  // namespace law_single_queries_equal_rows
}  // namespace attest
