// Score modifications that come to none, or that another one says as well.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "verify/judge/variation.hpp"

namespace attest {
namespace score_variations {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

/// The inputs with a tensor of nothing but `value`, of the shape that `problem` gives it.
InputsFrom with_all(const Problem& problem, InputIndex input, float value) {
  return [=](Inputs from) {
    from[input] = Tensor<float>((*problem.operation)[input].shape(problem), value);
    return from;
  };
}

/// All rows but those of the gradient of a bias, which the other call has in another shape, or
/// alone.
std::optional<RowPlace> all_but_of_bias(OutputIndex output, const RowPlace& row) {
  return output == backward::d_bias ? std::nullopt : std::optional(row);
}

/// The case with a tensor that comes to nothing, against the case without the tensor and without
/// its gradient.
Variation against_none(const Run& run, InputIndex input, float nothing,
                       void (*take_away)(Problem&)) {
  Case without = run.the_case();
  take_away(without.problem);
  return {.call = {run.the_case(), with_all(run.problem(), input, nothing)},
          .row_owed =
              [p = without.problem](OutputIndex output, const RowPlace& row) {
                return has_tensor(p, output) ? std::optional(row) : std::nullopt;
              },
          .reference = OtherCall{without, with_all(without.problem, input, 0)}};
}

Varied with_sinks_of_nothing(Run& run, const LawDraws&) {
  if (run.problem().sinks == Sinks::none) return {};
  return against_none(run, forward::sinks_of(run.problem()), minus_infinity,
                      [](Problem& p) { p.sinks = Sinks::none; });
}

Varied with_slopes_of_zero(Run& run, const LawDraws&) {
  if (run.problem().slopes == Slopes::none) return {};
  return against_none(run, forward::slopes_of(run.problem()), 0,
                      [](Problem& p) { p.slopes = Slopes::none; });
}

Varied with_bias_of_zero(Run& run, const LawDraws&) {
  if (run.problem().bias == Bias::none) return {};
  return against_none(run, forward::biases_of(run.problem()), 0,
                      [](Problem& p) { p.bias = Bias::none; });
}

/// Puts a bias of `to`'s shape into the inputs, whose elements are number(b, h, query, key).
template <typename Number>
void set_bias(const Problem& to, Inputs& inputs, const Number& number) {
  Tensor<float> bias(forward_operation[forward::bias].shape(to));
  const Shape& shape = bias.shape();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        for (std::int64_t j = 0; j < shape[3]; ++j) bias.at(b, h, n, j) = number(b, h, n, j);
      }
    }
  }
  inputs[forward::biases_of(to)] = bias;
}

/// The bias said for every entry and head, against the same one said once for those that share it.
Varied with_bias_of_each(Run& run, const LawDraws&) {
  const Problem& p = run.problem();
  if (p.bias == Bias::none || p.bias == Bias::full) return {};
  Case each = run.the_case();
  each.problem.bias = Bias::full;
  const auto copies = [p, full = each.problem](const Inputs& from) {
    Inputs inputs = from;
    set_bias(full, inputs, [&](auto... place) { return forward::bias_of(p, from, place...); });
    return inputs;
  };
  return Variation{.call = {each, copies}, .row_owed = all_but_of_bias};
}

/// Numbers of a bias that a law makes; where there would be more, it says nothing.
constexpr double most_biases = 1 << 22;

bool has_room_for_a_bias(const Problem& p) {
  return static_cast<double>(p.batch * p.query_heads) *
             static_cast<double>(p.query_len * p.key_len) <=
         most_biases;
}

/// Slopes of powers of two, so that fp32 holds what they add, and a bias of just that.
Varied with_bias_for_slopes(Run& run, const LawDraws&) {
  const Problem& p = run.problem();
  if (p.slopes == Slopes::none || p.bias != Bias::none || !run.kernel().features.bias) return {};
  if (!has_room_for_a_bias(p)) return {};
  Case biased = run.the_case();
  biased.problem.slopes = Slopes::none;
  biased.problem.bias = Bias::full;
  const InputIndex index = forward::slopes_of(p);
  const auto rounded_slopes = [index](Inputs from) {
    for (float& slope : from[index].values()) {
      slope =
          slope == 0 ? 0 : std::copysign(std::exp2(std::floor(std::log2(std::abs(slope)))), slope);
    }
    return from;
  };
  const auto same_bias = [p, index, to = biased.problem, rounded_slopes](const Inputs& given) {
    Inputs from = rounded_slopes(given);
    set_bias(to, from, [&, slopes = from](auto... place) {
      return static_cast<float>(forward::alibi_of(p, slopes, place...));
    });
    from[index] = Tensor<float>((*to.operation)[index].shape(to));
    return from;
  };
  return Variation{.call = {biased, same_bias},
                   .row_owed = all_but_of_bias,
                   .has_own_bound = true,
                   .reference = OtherCall{run.the_case(), rounded_slopes}};
}

/// Keys that padding or lists hide hidden by the bias instead.
Varied with_bias_that_hides(Run& run, const LawDraws&) {
  const Problem& p = run.problem();
  const bool hides = p.padding_seed != 0 || p.list_seed != 0;
  if (!hides || !run.kernel().features.bias || !has_room_for_a_bias(p)) return {};
  Case biased = run.the_case();
  biased.problem.padding_seed = 0;
  take_away_lists(biased.problem);
  biased.problem.bias = Bias::full;
  const auto hide = [p, to = biased.problem](const Inputs& from) {
    Inputs inputs = from;
    set_bias(to, inputs, [&](auto b, auto h, auto n, auto j) {
      const bool is_hidden = p.is_padded(b, j) || !p.is_listed(b, n, j);
      return is_hidden ? minus_infinity : forward::bias_of(p, from, b, h, n, j);
    });
    return inputs;
  };
  return Variation{.call = {biased, hide}, .row_owed = all_but_of_bias, .has_own_bound = true};
}

Varied with_one_document(Run& run, const LawDraws&) {
  if (run.problem().document_seed == 0) return {};
  const auto seed = seed_for(run.problem(), &Problem::document_seed, [](const auto& p, auto b) {
    return p.document_of(b, 0) == KeyRange{0, p.key_len_of(b)};
  });
  if (!seed) return {};
  Case one = run.the_case(), none = run.the_case();
  one.problem.document_seed = *seed;
  none.problem.document_seed = 0;
  return Variation{.call = {one}, .reference = OtherCall{none}};
}

/// An entry of the case with the keys that one of its queries sees, its document's, against the
/// rows of that document; of gradients those of its queries. Only without a mask by position:
/// removal moves keys and queries.
Varied with_one_document_alone(Run& run, const LawDraws& draws) {
  const Problem& p = run.problem();
  const bool is_plain = p.mask == Mask::none && p.slopes == Slopes::none && p.dropout == 0;
  if (p.document_seed == 0 || p.list_seed != 0 || !is_plain) return {};
  const auto b = draws.entry([&](std::int64_t entry) { return p.query_len_of(entry) > 0; });
  if (!b) return {};
  const KeyRange seen = p.visible_range(*b, draws.below(p.query_len_of(*b), 1));
  Variation alone = entry_alone(run.the_case(), *b, [&] {
    std::vector<std::int64_t> keys;
    for (std::int64_t key = seen.begin; key < seen.end; ++key) {
      if (!p.is_padded(*b, key)) keys.push_back(key);
    }
    return keys;
  }());
  alone.row_owed = [b = *b, p, seen](OutputIndex output, const RowPlace& row) {
    const bool is_owed = is_of_queries(p, output) && p.visible_range(b, row.n) == seen;
    return is_owed ? std::optional(RowPlace{b, row.h, row.n}) : std::nullopt;
  };
  return alone;
}

Varied with_an_empty_prefix(Run& run, const LawDraws&) {
  if (run.problem().prefix_seed == 0) return {};
  const auto seed = seed_for(run.problem(), &Problem::prefix_seed,
                             [](const auto& p, auto b) { return p.prefix_len_of(b) == 0; });
  if (!seed) return {};
  Case empty = run.the_case(), none = run.the_case();
  empty.problem.prefix_seed = *seed;
  none.problem.prefix_seed = 0;
  return Variation{.call = {empty}, .reference = OtherCall{none}};
}

/// Every query sees all keys, which is no mask at all. Documents and ALiBi know masks apart.
Varied with_a_prefix_of_all(Run& run, const LawDraws&) {
  const Problem& p = run.problem();
  if (p.prefix_seed == 0 || p.document_seed != 0 || p.slopes != Slopes::none) return {};
  const auto seed = seed_for(p, &Problem::prefix_seed, [](const auto& q, auto b) {
    return q.prefix_len_of(b) == q.key_len_of(b);
  });
  if (!seed) return {};
  Case full = run.the_case(), none = run.the_case();
  full.problem.prefix_seed = *seed;
  none.problem.prefix_seed = 0;
  none.problem.mask = Mask::none;
  return Variation{.call = {full}, .has_own_bound = true, .reference = OtherCall{none}};
}

Varied without_dropout(Run& run, const LawDraws&) {
  if (run.problem().dropout == 0) return {};
  Case none = run.the_case(), zero = run.the_case();
  none.problem.dropout = zero.problem.dropout = 0;
  none.problem.dropout_seed = none.problem.dropout_offset = 0;
  return Variation{.call = {zero}, .reference = OtherCall{none}};
}

Varied lse_without_dropout(Run& run, const LawDraws&) {
  if (run.problem().dropout == 0 || !run.kernel().gives(forward::lse)) return {};
  Case none = run.the_case();
  none.problem.dropout = 0;
  return Variation{.call = {none}, .row_owed = [](OutputIndex output, const RowPlace& row) {
                     return output == forward::lse ? std::optional(row) : std::nullopt;
                   }};
}

double largest_of(const Tensor<float>& tensor) {
  double largest = 0;
  for (const float x : tensor.values()) largest = std::max<double>(largest, std::abs(x));
  return largest;
}

/// All weights fallen, against values of 0. An infinite dO.v times 0 would be no 0.
Varied with_all_weights_fallen(Run& run, const LawDraws&) {
  if (run.problem().dropout == 0) return {};
  const double most = largest_of(run.inputs()[backward::v]) *
                      largest_of(run.inputs()[backward::d_o]) *
                      static_cast<double>(run.problem().output_dim());
  if (!(most < std::numeric_limits<float>::max())) return {};
  Case fallen = run.the_case(), zeros = run.the_case();
  fallen.problem.dropout = 1;
  zeros.problem.dropout = 0;
  zeros.problem.dropout_seed = zeros.problem.dropout_offset = 0;
  const auto without_values = [](Inputs from) {
    std::ranges::fill(from[backward::v].values(), 0.0F);
    return from;
  };
  return Variation{.call = {fallen},
                   .row_owed =
                       [](OutputIndex output, const RowPlace& row) {
                         return output == backward::dv ? std::nullopt : std::optional(row);
                       },
                   .reference = OtherCall{zeros, without_values}};
}

const std::vector<const Operation*> forward_only{&forward_operation};
const std::vector<const Operation*> both_passes{&forward_operation, &backward_operation};

const VariationLaws registration{{
    {.name = "absent_sinks_are_minus_infinity",
     .statement = "sinks of -infinity change no bit against none",
     .operations = both_passes,
     .same_bits_but_for = Differences{},
     .failure = "sinks of -infinity give another answer than none",
     .vary = with_sinks_of_nothing},
    {.name = "absent_slopes_are_zero",
     .statement = "slopes of 0 change no bit against none",
     .operations = both_passes,
     .same_bits_but_for = Differences{},
     .failure = "slopes of 0 give another answer than none",
     .vary = with_slopes_of_zero},
    {.name = "absent_bias_is_zero",
     .statement = "a bias of 0 changes no bit against none",
     .operations = both_passes,
     .same_bits_but_for = Differences{},
     .failure = "a bias of 0 gives another answer than none",
     .vary = with_bias_of_zero},
    {.name = "shared_bias_equals_copies",
     .statement = "a bias that entries or heads share changes no bit against a copy for each",
     .operations = both_passes,
     .same_bits_but_for = Differences{.addresses = true},
     .failure = "a bias that is shared gives another answer than copies of it",
     .vary = with_bias_of_each},
    {.name = "slopes_equal_a_bias",
     .statement = "a bias of -slope |distance| gives the answer of the slopes, within the sum of "
                  "the bounds",
     .layer = Layer::bound,
     .operations = both_passes,
     .failure = "a bias that says what slopes say gives another answer",
     .vary = with_bias_for_slopes},
    {.name = "bias_hides_as_padding_and_lists",
     .statement =
         "keys hidden by a bias of -infinity instead of padding or lists leave the answer as it "
         "is, within the sum of the bounds",
     .layer = Layer::bound,
     .operations = both_passes,
     .failure = "keys that a bias of -infinity hides have an influence",
     .vary = with_bias_that_hides},
    {.name = "one_document_is_none",
     .statement = "a single document in every entry changes no bit against none",
     .operations = both_passes,
     .same_bits_but_for = Differences{},
     .failure = "a single document gives another answer than none",
     .vary = with_one_document},
    {.name = "document_equals_itself_alone",
     .statement = "a row sees its document's keys alone: it has the answer of an entry that has no "
                  "others, within the sum of the bounds",
     .layer = Layer::bound,
     .operations = both_passes,
     .failure = "without the keys of other documents a row has another answer",
     .stream = stream_document,
     .vary = with_one_document_alone},
    {.name = "empty_prefix_is_none",
     .statement = "prefixes without a key change no bit against none",
     .operations = both_passes,
     .same_bits_but_for = Differences{},
     .failure = "prefixes without a key give another answer than none",
     .vary = with_an_empty_prefix},
    {.name = "full_prefix_is_no_mask",
     .statement =
         "a prefix of all keys under a causal mask gives the answer without a mask, within "
         "the sum of the bounds",
     .layer = Layer::bound,
     .operations = both_passes,
     .failure = "a prefix of all keys gives another answer than no mask",
     .vary = with_a_prefix_of_all},
    {.name = "dropout_of_zero_is_none",
     .statement = "a dropout of 0 changes no bit, whatever its seed and offset",
     .operations = both_passes,
     .same_bits_but_for = Differences{},
     .failure = "a dropout of 0 gives another answer than none",
     .vary = without_dropout},
    {.name = "dropout_of_one_is_values_of_zero",
     .statement = "with a dropout of 1 all gradients but dV have the bits that they have without "
                  "dropout where V is 0",
     .operations = {&backward_operation},
     .same_bits_but_for = Differences{},
     .failure = "all weights have fallen, and a gradient is not what values of 0 give",
     .vary = with_all_weights_fallen},
    {.name = "dropout_leaves_lse",
     .statement = "dropout changes no bit of LSE",
     .operations = forward_only,
     .same_bits_but_for = Differences{},
     .failure = "dropout changed LSE",
     .vary = lse_without_dropout},
}};

}  // namespace score_variations
}  // namespace attest
