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

/// The rows that see no key from `first` on have the bits of the base launch.
Check check_future(Run& run, std::int64_t first, float future) {
  const Problem& problem = run.problem();
  const Outputs& base = run.base().outputs;
  const Launch launch = run.launch(run.the_case(), with_future(run.inputs(), first, future));
  const std::string failure = fmt::format(
      "keys from {} on became {}, and a row that cannot see them changed", first, future);
  return check_rows(problem, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
    if (problem.visible_keys(n) > first) return Check::passed();
    for (std::int64_t d = 0; d < problem.head_dim; ++d) {
      const float got = launch.outputs.o.at(b, h, n, d);
      const float want = base.o.at(b, h, n, d);
      if (same_bits(got, want)) continue;
      return Check::failed_at("O", {.index = {b, h, n, d}, .got = got, .want = want}, failure);
    }
    const float got = launch.outputs.lse.at(b, h, n, 0);
    const float want = base.lse.at(b, h, n, 0);
    if (same_bits(got, want)) return Check::passed();
    return Check::failed_at("LSE", {.index = {b, h, n, 0}, .got = got, .want = want}, failure);
  });
}

const PropertyRegistration registration{
    {.name = "future_keys_irrelevant",
     .statement = "replacing keys and values that a row cannot see, by NaN or by a huge number, "
                  "changes none of its bits",
     .cost = Property::Cost::more_launches,
     .applies = [](Run& run) { return first_replaced_key(run).has_value(); },
     .check =
         [](Run& run) {
           const std::int64_t first = *first_replaced_key(run);
           // 1e30 where the format holds it: its products overflow, which a mask must hide too.
           const double largest = format_of(run.problem().element_type).max_finite;
           const auto huge = static_cast<float>(std::min(1e30, largest));
           if (run.kernel().ignores_hidden_nan) {
             const Check check = check_future(run, first, std::numeric_limits<float>::quiet_NaN());
             if (check.status == Check::Status::failed) return check;
           }
           return check_future(run, first, huge);
         }}};

}  // namespace
}  // namespace attest
