// Who else is in a batch, and where: a request and a head answer for themselves.
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/quantise.hpp"
#include "core/operations/quantised.hpp"
#include "core/operations/select.hpp"
#include "verify/cases/heavy_tail.hpp"
#include "verify/judge/variation.hpp"

namespace attest {
namespace batch_variations {

/// Lengths and padding belong to an entry's place, so an entry cannot stand alone with its own.
bool depends_on_place(const Problem& problem) {
  return problem.length_seed != 0 || problem.padding_seed != 0 || depends_on_places(problem);
}

/// The case with `batch` entries. A gap between entries, or between rows that are gone, may be
/// 2^31 elements: layouts become contiguous, and pages stay.
Case with_batch(const Run& run, std::int64_t batch) {
  Case c = run.the_case();
  c.problem.batch = batch;
  c.layouts = {};
  c.layouts.paging = run.the_case().layouts.paging;
  return c;
}

/// A batch of copies of the last entry.
Variation copies_of_last_entry(Case c) {
  const Problem copies = c.problem;
  return {.call = {std::move(c),
                   [copies](const Inputs& from) {
                     const std::int64_t last = from[InputIndex{0}].shape()[0] - 1;
                     return gathered_entries(copies, from, [=](auto) { return last; });
                   }},
          .has_own_bound = true};
}

RowOwed rows_of_entry(const Problem& p, std::int64_t entry) {
  return [p, entry](OutputIndex output, const RowPlace& row) {
    return sums_over_entries(p, output) ? std::nullopt
                                        : std::optional(RowPlace{entry, row.h, row.n});
  };
}

/// Every other request holds nothing but `value`.
Tensor<float> replaced_mates(Tensor<float> tensor, std::int64_t request, float value) {
  const Shape shape = tensor.shape();
  if (shape[0] == 1) return tensor;  // the request's, too
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1] && b != request; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) std::ranges::fill(tensor.row(b, h, n), value);
    }
  }
  return tensor;
}

Varied last_request_alone(Run& run, const LawDraws&) {
  const std::int64_t batch = run.problem().batch;
  if (batch == 1 || depends_on_place(run.problem())) return {};
  Case alone = run.the_case();
  alone.problem.batch = 1;
  Variation variation = copies_of_last_entry(std::move(alone));
  variation.row_owed = rows_of_entry(run.problem(), batch - 1);
  return variation;
}

Varied with_replaced_mates(Run& run, const LawDraws& draws) {
  if (run.problem().batch == 1 || !depends_on_place(run.problem())) return {};
  const std::int64_t request = draws.below(run.problem().batch);
  const float other =
      run.kernel().ignores_hidden_nan ? std::numeric_limits<float>::quiet_NaN() : 1.0F;
  return Variation{
      .call = {run.the_case(),
               [=](const Inputs& from) {
                 return mapped(from, [&](const Tensor<float>& tensor) {
                   return replaced_mates(tensor, request, other);
                 });
               }},
      .row_owed = [p = run.problem(), request](OutputIndex output, const RowPlace& row) {
        const bool is_owed = row.b == request && !sums_over_entries(p, output);
        return is_owed ? std::optional(row) : std::nullopt;
      }};
}

Varied last_request_twice(Run& run, const LawDraws&) {
  if (depends_on_place(run.problem())) return {};
  Variation variation = copies_of_last_entry(with_batch(run, 2));
  variation.row_owed = rows_of_entry(run.problem(), run.problem().batch - 1);
  return variation;
}

/// Up to 300 mates where rows and tiles are few, as when text is generated.
constexpr std::array<std::int64_t, 3> mates{1, 7, 300};
constexpr std::int64_t most_keys = 1 << 16;
/// Largest usual cases that the launch may cost: 300 mates of one head and one tile are about as
/// many.
constexpr std::int64_t most_times = 16;

/// The batch, and its entries again behind it.
Varied with_more_mates(Run& run, const LawDraws& draws) {
  if (!claims_same_bits(run, {.batch = true, .addresses = true})) return {};
  const Problem& p = run.problem();
  const Plan& plan = run.the_case().plan;
  const std::int64_t rows = (p.query_len + p.key_len) * p.query_heads;
  const std::int64_t work_of_entry = work_of(run.kernel(), p, plan) / p.batch;
  const auto choices = static_cast<std::int64_t>(std::ranges::count_if(mates, [&](std::int64_t n) {
    return n * rows <= most_keys &&
           (n == mates.front() || n * work_of_entry <= most_times * most_work(run.kernel(), plan));
  }));
  if (choices == 0) return {};
  const std::int64_t entries = p.batch;
  const std::int64_t batch = entries + mates[static_cast<std::size_t>(draws.below(choices))];
  Case larger = with_batch(run, batch);
  const Problem with_mates = larger.problem;
  return Variation{.call = {std::move(larger),
                            [=](const Inputs& from) {
                              return gathered_entries(with_mates, from,
                                                      [=](auto b) { return b % entries; });
                            }},
                   .row_owed = [entries](OutputIndex, const RowPlace& row) {
                     return row.b < entries ? std::optional(row) : std::nullopt;
                   }};
}

/// Sums over a group, as a backward pass has them, are made in the order of its query heads.
bool sums_over_groups(const Operation& operation) {
  return std::ranges::any_of(operation.outputs(),
                             [](const TensorSpec& output) { return output.rows == Rows::keys; });
}

/// Heads in reverse, and the batch unless lengths or padding belong to its places; query heads keep
/// their key/value head, and where groups are summed their order in the group.
Varied reversed_heads(Run& run, const LawDraws&) {
  const Problem& p = run.problem();
  if (p.batch * p.query_heads == 1 || p.dropout > 0) return {};
  const bool keeps_batch = depends_on_place(p);
  const auto place_of = [=, batch = p.batch, kv_heads = p.kv_heads,
                         in_groups = sums_over_groups(*p.operation)](std::int64_t heads,
                                                                     const RowPlace& row) {
    // A tensor that all query heads share has one.
    const std::int64_t together = in_groups ? std::max<std::int64_t>(1, heads / kv_heads) : 1;
    return RowPlace{keeps_batch ? row.b : batch - 1 - row.b,
                    heads - together * (row.h / together + 1) + row.h % together, row.n};
  };
  const Operation& operation = *p.operation;
  return Variation{
      .call = {run.the_case(),
               [=](const Inputs& from) {
                 return mapped(from, [&](const Tensor<float>& tensor) {
                   const Shape& shape = tensor.shape();
                   return gathered(tensor, shape, [&](auto b, auto h, auto n) {
                     RowPlace place = place_of(shape[1], {b, h, n});
                     if (shape[0] == 1) place.b = 0;
                     return place;
                   });
                 });
               }},
      .row_owed = [=, &operation, problem = p](OutputIndex output,
                                               const RowPlace& row) -> std::optional<RowPlace> {
        // Of entries or heads in another order a sum has other bits.
        const bool sums = sums_over_entries(problem, output);
        if (sums && !keeps_batch && problem.batch > 1) return std::nullopt;
        if (sums_over_heads(problem, output)) return std::nullopt;
        RowPlace place = place_of(operation[output].shape(problem)[1], row);
        if (sums) place.b = 0;
        return place;
      }};
}

/// An entry with queries as a dense problem of its own.
Varied packed_entry_alone(Run& run, const LawDraws& draws) {
  const Problem& p = run.problem();
  if (p.length_seed == 0 || p.padding_seed != 0 || depends_on_places(p)) return {};
  const auto b = draws.entry([&](std::int64_t entry) { return p.query_len_of(entry) > 0; });
  if (!b) return {};
  std::vector<std::int64_t> keys(static_cast<std::size_t>(p.key_len_of(*b)));
  std::iota(keys.begin(), keys.end(), 0);
  return entry_alone(run.the_case(), *b, std::move(keys));
}

const VariationLaws registration{{
    {.name = "batch_mates_irrelevant",
     .statement = "a request alone has the bits that it has among other requests, under one plan",
     .same_bits_but_for = Differences{.batch = true, .addresses = true},
     .failure = "a request alone has another result than among others",
     .vary = last_request_alone},
    {.name = "batch_mates_replaced",
     .statement = "a request that lengths or padding tie to its place keeps its bits, whatever the "
                  "others hold",
     // Mates with other keys share no pages with the request.
     .same_bits_but_for = Differences{.sharing = true},
     .failure = "the values of other requests changed a request",
     .stream = stream_batch_mates,
     .vary = with_replaced_mates},
    {.name = "duplicated_request_bitwise",
     .statement = "a request that stands in a batch of two twice has twice the bits that it has in "
                  "the batch",
     .same_bits_but_for = Differences{.batch = true, .addresses = true, .sharing = true},
     .failure = "a request that stands in the batch twice has another result",
     .vary = last_request_twice},
    {.name = "more_mates_irrelevant",
     .statement = "entries keep their bits when 1, 7 or 300 others, of lengths of their own, join "
                  "the batch behind them, under one plan",
     .operations = {&forward_operation, &quantised_operation, &quantise_operation,
                    &select_operation},
     .same_bits_but_for = Differences{.batch = true, .addresses = true},
     .failure = "mates that joined the batch changed an entry",
     .stream = stream_more_mates,
     .vary = with_more_mates},
    {.name = "permuted_heads_bitwise",
     .statement = "permuting batch and heads permutes the outputs bit for bit",
     // Heads that are packed into the rows of a tile are neighbours.
     .same_bits_but_for = Differences{.batch = true, .addresses = true, .neighbours = true},
     .failure = "with batch and heads reversed, a head has another result",
     .vary = reversed_heads},
    {.name = "lengths_equal_single_entries",
     .statement = "an entry of a packed batch has the answer of its own rows and keys alone, "
                  "within the sum of the bounds",
     .layer = Layer::bound,
     .operations = {&forward_operation, &backward_operation, &quantised_operation,
                    &quantise_operation, &select_operation},
     .failure = "an entry alone differs from the same entry in a packed batch",
     .stream = stream_single_entry,
     .vary = packed_entry_alone},
}};

}  // namespace batch_variations
}  // namespace attest
