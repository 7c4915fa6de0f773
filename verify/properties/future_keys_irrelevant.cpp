#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/random.hpp"
#include "verify/property.hpp"

namespace attest {
namespace {

/// The first key that is replaced: some row must see a key before it and not it.
std::optional<std::int64_t> first_replaced_key(Run& run) {
  const Problem& problem = run.problem();
  std::vector<std::int64_t> cuts;
  for (std::int64_t query = 0; query < problem.query_len; ++query) {
    const std::int64_t count = problem.visible_keys(query);
    if (count > 0 && count < problem.key_len) cuts.push_back(count);
  }
  if (cuts.empty()) return std::nullopt;
  const auto pick =
      random_below(run.the_case().inputs.seed, 78, 0, static_cast<std::int64_t>(cuts.size()));
  return cuts[static_cast<std::size_t>(pick)];
}

Inputs with_future(Inputs inputs, std::int64_t first, float value) {
  for (Tensor<float>* tensor : {&inputs.k, &inputs.v}) {
    const Shape shape = tensor->shape();
    for (std::int64_t b = 0; b < shape[0]; ++b) {
      for (std::int64_t h = 0; h < shape[1]; ++h) {
        for (std::int64_t n = first; n < shape[2]; ++n) {
          std::ranges::fill(tensor->row(b, h, n), value);
        }
      }
    }
  }
  return inputs;
}

const PropertyRegistration registration{
    {.name = "future_keys_irrelevant",
     .statement = "replacing keys and values that a row cannot see, by NaN or by a huge number, "
                  "changes none of its bits",
     .cost = Property::Cost::more_launches,
     .applies = [](Run& run) { return first_replaced_key(run).has_value(); },
     .check =
         [](Run& run) {
           const Problem& problem = run.problem();
           const std::int64_t first = *first_replaced_key(run);
           // 1e30 where the format holds it: its products overflow to infinity, which a mask must
           // hide too.
           const auto huge =
               static_cast<float>(std::min(1e30, format_of(problem.element_type).max_finite));
           for (const float future : {std::numeric_limits<float>::quiet_NaN(), huge}) {
             const Launch launch =
                 run.launch(run.the_case(), with_future(run.inputs(), first, future));
             for (std::int64_t b = 0; b < problem.batch; ++b) {
               for (std::int64_t h = 0; h < problem.query_heads; ++h) {
                 for (std::int64_t n = 0; n < problem.query_len; ++n) {
                   if (problem.visible_keys(n) > first) continue;
                   for (std::int64_t d = 0; d < problem.head_dim; ++d) {
                     const float got = launch.outputs.o.at(b, h, n, d);
                     const float want = run.base().outputs.o.at(b, h, n, d);
                     if (same_bits(got, want)) continue;
                     return Check::failed_at(
                         "O", {.index = {b, h, n, d}, .got = got, .want = want},
                         fmt::format(
                             "keys from {} on became {}, and a row that cannot see them changed",
                             first, future));
                   }
                   const float got = launch.outputs.lse.at(b, h, n, 0);
                   const float want = run.base().outputs.lse.at(b, h, n, 0);
                   if (same_bits(got, want)) continue;
                   return Check::failed_at("LSE", {.index = {b, h, n, 0}, .got = got, .want = want},
                                           fmt::format("keys from {} on became {}, and the LSE of "
                                                       "a row that cannot see them changed",
                                                       first, future));
                 }
               }
             }
           }
           return Check::passed();
         }}};

}  // namespace
}  // namespace attest
