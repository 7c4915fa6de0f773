// Keys, heads and weights of a choice said another way.
#include <algorithm>
#include <cmath>
#include <memory>

#include "core/operations/select.hpp"
#include "cpu_reference/select/selection.hpp"
#include "verify/judge/variation.hpp"

namespace attest {
namespace selection_variations {

/// Query heads in reverse, and with them their weights and the heads of K.
Varied with_reversed_heads(Run& run, const LawDraws&) {
  if (run.problem().query_heads == 1) return {};
  const auto reversed = [](const Tensor<float>& tensor) {
    return gathered(tensor, tensor.shape(), [heads = tensor.shape()[1]](auto b, auto h, auto n) {
      return RowPlace{b, heads - 1 - h, n};
    });
  };
  return Variation{
      .call = {run.the_case(), [=](const Inputs& from) { return mapped(from, reversed); }},
      .has_own_bound = true};
}

/// Numbers whose products with 2^8 and fp32's sums of them stay normal and finite.
bool may_be_scaled(const Tensor<float>& weights, const Answer& answer) {
  const auto is_within = [](double x) {
    return x == 0 || (std::abs(x) > 0x1p-60 && std::abs(x) < 0x1p60);
  };
  return std::ranges::all_of(weights.values(), is_within) &&
         std::ranges::all_of(answer[selecting::scores].bound.values(), is_within);
}

/// Weights of all heads times a power of two of the query's own: scores are exactly as many times
/// as large, so the same keys are chosen.
Varied with_scaled_weights(Run& run, const LawDraws& draws) {
  const Problem& p = run.problem();
  if (!may_be_scaled(run.inputs()[selecting::weights], run.answer())) return {};
  return Variation{.call = {run.the_case(),
                            [=](Inputs from) {
                              Tensor<float>& weights = from[selecting::weights];
                              for (std::int64_t n = 0; n < p.query_len; ++n) {
                                const auto exponent = static_cast<int>(
                                    draws.below(17, static_cast<std::uint64_t>(n)) - 8);
                                for (std::int64_t b = 0; b < p.batch; ++b) {
                                  for (std::int64_t h = 0; h < p.query_heads; ++h) {
                                    float& weight = weights.at(b, h, n, 0);
                                    weight = std::ldexp(weight, exponent);
                                  }
                                }
                              }
                              return from;
                            }},
                   .row_owed = [](OutputIndex output, const RowPlace& row) {
                     return output == selecting::scores ? std::nullopt : std::optional(row);
                   }};
}

Inputs with_positive_weights(Inputs inputs) {
  for (float& weight : inputs[selecting::weights].values()) weight = std::abs(weight);
  return inputs;
}

/// Rows, by entry and query, whose list is full of keys that surely score above 0 under weights
/// that are not negative.
std::vector<bool> rows_above_zero(Run& run) {
  const Problem& p = run.problem();
  const Inputs inputs = with_positive_weights(run.inputs());
  const Roundings how = run.kernel().precision(p, run.the_case().plan);
  std::vector<bool> rows;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t n = 0; n < p.query_len; ++n) {
      const auto ranges =
          score_ranges(p, inputs, how.as<SelectRoundings>(), b, n, visible_keys_of(p, b, n));
      const auto above =
          std::ranges::count_if(ranges, [](const ScoreRange& range) { return range.lowest > 0; });
      rows.push_back(above >= p.top_k);
    }
  }
  return rows;
}

/// Keys of zeros behind the others, which score 0. Weights are made positive, so that rows with
/// enough keys above that choose none of them. Only without a mask, whose diagonal would move.
Varied with_keys_of_zeros(Run& run, const LawDraws& draws) {
  const Problem& p = run.problem();
  if (p.mask != Mask::none || p.length_seed != 0 || p.padding_seed != 0 || p.top_k == 0) return {};
  OtherCall longer{.the_case = run.the_case()};
  Problem& with_zeros = longer.the_case.problem;
  with_zeros.key_len += 1 + draws.below(150);
  longer.the_case.layouts = {};
  longer.inputs = [with_zeros](const Inputs& from) {
    Inputs inputs = with_positive_weights(from);
    const Tensor<float>& keys = from[selecting::k];
    Tensor<float> more(key_shape(with_zeros));
    for (std::int64_t b = 0; b < with_zeros.batch; ++b) {
      for (std::int64_t h = 0; h < with_zeros.kv_heads; ++h) {
        for (std::int64_t n = 0; n < keys.shape()[2]; ++n) {
          std::ranges::copy(keys.row(b, h, n), more.row(b, h, n).begin());
        }
      }
    }
    inputs[selecting::k] = std::move(more);
    return inputs;
  };
  return Variation{.call = std::move(longer),
                   .row_owed =
                       [&run, is_owed = std::make_shared<std::vector<bool>>(), rows = p.query_len](
                           OutputIndex, const RowPlace& row) {
                         // Only where the law is asked, which is not known here.
                         if (is_owed->empty()) *is_owed = rows_above_zero(run);
                         const auto at = static_cast<std::size_t>(row.b * rows + row.n);
                         return (*is_owed)[at] ? std::optional(row) : std::nullopt;
                       },
                   .has_own_bound = true,
                   .reference = OtherCall{run.the_case(), with_positive_weights}};
}

const VariationLaws registration{{
    {.name = "heads_may_change_places",
     .statement = "heads in reverse, with their weights and keys, give the same choice within the "
                  "sum of the bounds",
     .layer = Layer::bound,
     .operations = {&select_operation},
     .failure = "with heads reversed other keys are chosen",
     .vary = with_reversed_heads},
    {.name = "scaled_weights_choose_alike",
     .statement = "the weights of a query times a power of two choose the same keys, bit for bit",
     .operations = {&select_operation},
     .same_bits_but_for = Differences{},
     .failure = "weights times a power of two chose other keys",
     .stream = stream_scaled_weights,
     .vary = with_scaled_weights},
    {.name = "keys_of_zeros_are_not_chosen",
     .statement = "keys of zeros behind the others change no list that is full of keys above 0, "
                  "where no weight is negative",
     .layer = Layer::bound,
     .operations = {&select_operation},
     .failure = "keys of zeros changed what is chosen",
     .stream = stream_keys_of_zeros,
     .vary = with_keys_of_zeros},
}};

}  // namespace selection_variations
}  // namespace attest
