#include <algorithm>
#include <array>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"
#include "verify/cases/heavy_tail.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_more_mates_irrelevant {

/// Up to 300 mates where rows and tiles are few, as when text is generated.
constexpr std::array<std::int64_t, 3> mates{1, 7, 300};
constexpr std::int64_t most_keys = 1 << 16;
/// Largest usual cases that the launch may cost: 300 mates of one head and one tile are about as
/// many.
constexpr std::int64_t most_times = 16;

Case with_mates(const Run& run) {
  Case c = run.the_case();
  const Problem& p = run.problem();
  // A gap between two entries may be 2^31 elements.
  c.layouts = {};
  c.layouts.paging = run.the_case().layouts.paging;
  const std::int64_t rows = (p.query_len + p.key_len) * p.query_heads;
  const std::int64_t work_of_entry = work_of(run.kernel(), p, c.plan) / p.batch;
  const auto choices = static_cast<std::int64_t>(std::ranges::count_if(mates, [&](std::int64_t n) {
    return n * rows <= most_keys &&
           (n == mates.front() ||
            n * work_of_entry <= most_times * most_work(run.kernel(), c.plan));
  }));
  if (choices > 0) {
    c.problem.batch +=
        mates[static_cast<std::size_t>(random_below(c.inputs.seed, stream_more_mates, 0, choices))];
  }
  return c;
}

/// The batch, and its entries again behind it.
Tensor<float> repeated(const Tensor<float>& from, std::int64_t batch) {
  Shape shape = from.shape();
  const std::int64_t entries = shape[0];
  shape[0] = batch;
  Tensor<float> to(shape);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        std::ranges::copy(from.row(b % entries, h, n), to.row(b, h, n).begin());
      }
    }
  }
  return to;
}

Tensor<float> first_entries(const Tensor<float>& from, std::int64_t batch) {
  Shape shape = from.shape();
  shape[0] = batch;
  Tensor<float> to(shape);
  std::copy_n(from.values().begin(), to.size(), to.values().begin());
  return to;
}

const LawRegistration registration{
    {.name = "more_mates_irrelevant",
     .statement = "entries keep their bits when 1, 7 or 300 others, of lengths of their own, join "
                  "the batch behind them, under one plan",
     .cost = Law::Cost::more_launches,
     .operations = {&forward_operation, &quantised_operation},
     .applies =
         [](Run& run) {
           const Case more = with_mates(run);
           return more.problem.batch > run.problem().batch &&
                  claims_same_bits(run, {.batch = true, .addresses = true}) &&
                  !why_unsupported(run.kernel(), more);
         },
     .check =
         [](Run& run) {
           const Case more = with_mates(run);
           const std::int64_t batch = run.problem().batch;
           const Launch launch =
               run.launch(more, mapped(run.inputs(), [&](const Tensor<float>& tensor) {
                            return repeated(tensor, more.problem.batch);
                          }));
           return check_agree(
               run.kernel(),
               mapped(launch.outputs,
                      [&](const Tensor<float>& tensor) { return first_entries(tensor, batch); }),
               run.base().outputs, {}, "mates that joined the batch changed an entry");
         }}};

}  // namespace law_more_mates_irrelevant
}  // namespace attest
