#include "core/inputs/input_family.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/operation.hpp"
#include "core/base/error.hpp"
#include "core/inputs/families.hpp"
#include "core/inputs/input_fill.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/combine.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/quantise.hpp"
#include "core/operations/quantised.hpp"
#include "core/operations/select.hpp"

namespace attest {
namespace {

/// A family for one operation, of inputs as they are.
InputFamily of(const Operation& operation, std::string name, std::string summary,
               std::vector<double> magnitudes, Inputs (*make)(const Problem&, const InputSpec&)) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .magnitudes = std::move(magnitudes),
          .make = make,
          .unsupported = {},
          .operation = &operation};
}

/// A family of dO.
InputFamily of_gradients(std::string name, std::string summary, std::vector<double> magnitudes,
                         Inputs (*make)(const Problem&, const InputSpec&),
                         bool is_complete = false) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .magnitudes = std::move(magnitudes),
          .make = make,
          .unsupported = {},
          .operation = &backward_operation,
          .is_complete = is_complete};
}

/// A family of codes and scales.
InputFamily of_codes(std::string name, std::string summary, std::vector<double> magnitudes,
                     Inputs (*make)(const Problem&, const InputSpec&)) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .magnitudes = std::move(magnitudes),
          .make = make,
          .unsupported = {},
          .operation = &quantised_operation,
          .is_complete = true};
}

std::vector<InputFamily>& families() {
  static std::vector<InputFamily> table{
      {"normal",
       "independent N(0, 1); logits of standard deviation `magnitude`",
       {1, 4, 16},
       normal,
       {}},
      {"zero_q",
       "all logits 0: O is the plain mean of V; shows a wrong denominator",
       {1},
       zero_q,
       {}},
      {"constant_q", "every query of a head the same vector", {1, 8}, constant_q, {}},
      {"ascending_maxima",
       "logits rise along the keys: the maximum moves in every block",
       {4, 20, 80},
       ascending_maxima,
       {}},
      {"descending_maxima",
       "logits fall along the keys: the maximum is in the first block",
       {4, 20, 80},
       descending_maxima,
       {}},
      {"all_negative",
       "all logits below -magnitude: shows zero padding and finite sentinels",
       {10, 200, 6e4, 2e10},
       all_negative,
       {}},
      {"negative_shift",
       "N(0, 1) logits moved down by `magnitude`: a finite sentinel above them empties the row",
       {50, 6e4, 5e5},
       negative_shift,
       {}},
      {"dominant_key", "one key far above the others", {10, 30, 100}, dominant_key, {}},
      {"sink", "the first key takes most of the mass, the others are flat", {3, 8}, sink, {}},
      {"ties", "repeated keys of small whole numbers: exact ties at the maximum", {1, 4}, ties, {}},
      {"huge_logits",
       "logits of standard deviation `magnitude`: overflow, one-hot rows",
       {1e2, 1e4, 1e6, 1e10},
       huge_logits,
       {}},
      {"equal_huge_logits",
       "one large logit for every pair",
       {1e2, 1e5, 1e9},
       equal_huge_logits,
       {}},
      {"constant_v",
       "V constant over the keys of a head: O is that constant",
       {1, 8},
       constant_v,
       {}},
      {"one_hot_v", "V one-hot by key: O shows the weights themselves", {1, 8}, one_hot_v, {}},
      {"positive_v",
       "V near `magnitude`: errors of the denominator do not average out; sums over keys overflow "
       "fp16",
       {1, 1e3, 6e4},
       positive_v,
       {}},
      {"key_index_v",
       "V is the number of its key: O shows which keys were read",
       {1},
       key_index_v,
       {}},
      {"alternating_v",
       "V is +magnitude and -magnitude in turn: a lost or doubled key does not average out",
       {1, 3e4},
       alternating_v,
       {}},
      {"scaled_v",
       "V times a power of two of its own for every head: another head's V shows",
       {1},
       scaled_v,
       {}},
      {"late_dims", "only the last quarter of the head dims is non-zero", {1}, late_dims, {}},
      {"outliers",
       "FlashAttention-3's mix: N(0, 1) + N(0, 100) Bernoulli(0.001)",
       {1},
       outliers,
       {}},
      {"sparse_integers",
       "mostly zeros, else whole numbers in [-2, 2]: exact sums",
       {1},
       sparse_integers,
       {}},
      of(combine_operation, "partial_normal", "LSE_p of standard deviation `magnitude`", {1, 4, 16},
         partial_normal),
      of(combine_operation, "partial_far_apart",
         "LSE_p in steps of `magnitude`: a merge without the maximum overflows", {10, 40, 100, 1e4},
         partial_far_apart),
      of(combine_operation, "partial_dominant", "one part of a row `magnitude` above the others",
         {5, 20, 80}, partial_dominant),
      of(combine_operation, "partial_some_empty",
         "parts that saw no key among others: -infinity minus -infinity", {1, 16},
         partial_some_empty),
      of(combine_operation, "partial_all_empty", "no part saw a key: 0 over 0", {1},
         partial_all_empty),
      of(combine_operation, "partial_copies", "all parts of a row alike", {1, 16}, partial_copies),
      of(combine_operation, "partial_ties",
         "equal weights, O_p near 1: errors of the sum do not average out", {0, -50, 1e3},
         partial_ties),
      of_gradients("gradient_zero", "dO 0: so are all gradients, whatever lay in memory", {1},
                   gradient_zero),
      of_gradients("gradient_one_hot",
                   "dO has one element a head that is not 0: rows and columns that are mixed up",
                   {1, 16}, gradient_one_hot),
      of_gradients("gradient_integers", "dO and V small whole numbers: products of both are exact",
                   {1}, gradient_integers),
      of_gradients("gradient_scaled", "dO as loss scaling makes it: fp16 overflows in dS",
                   {0x1p-12, 0x1p10, 0x1p16}, gradient_scaled),
      of_gradients("gradient_along_o",
                   "dO is O: delta is as large as it gets, and dO V^T cancels against it", {1, 4},
                   gradient_along_o, true),
      of_gradients("gradient_mean_kv",
                   "K and V with means: an error of delta adds up along the mean key", {1, 3},
                   gradient_mean_kv),
      of_gradients("gradient_inexact_saved",
                   "O and LSE off by some roundings: a kernel must take what it is given", {1},
                   gradient_inexact_saved, true),
      of(quantised_operation, "offset_v",
         "V is N(0, 1) + magnitude: sums over keys that lose what they are added to, and errors "
         "of weights that do not average out",
         {1, 10}, offset_v),
      of(quantised_operation, "channel_means_k",
         "K is N(0, 1) + magnitude times one N(0, 1) a column: codes spent on what all keys share",
         {1, 10}, channel_means_k),
      of_codes("all_codes",
               "K and V run through all codes: a lost sign, flushed subnormals, a wrong table",
               {1, 4}, all_codes),
      of_codes("distinct_scales",
               "every scale another power of two: one that is missing, or another's", {1, 4},
               distinct_scales),
      of(quantise_operation, "numbers_far_apart",
         "each row, column and head times a power of two of its own: another group's scale", {1},
         numbers_far_apart),
      of(quantise_operation, "numbers_below_zero",
         "the largest of each row, column and head is negative: a maximum without magnitudes",
         {8, 1e3}, numbers_below_zero),
      of(quantise_operation, "numbers_between_codes",
         "halfway between codes: the rule of ties; from 2 on of scales with many digits, "
         "where a product with 1 / scale is no quotient",
         {1, 2}, numbers_between_codes),
      of(quantise_operation, "numbers_of_zeros",
         "whole rows and heads of 0 and -0: the scale of nothing", {1}, numbers_of_zeros),
      of(quantise_operation, "numbers_near_zero",
         "numbers of `magnitude`, whose scales are subnormal or 0: quotients past the codes",
         {1e-36, 1e-41, 1e-44}, numbers_near_zero),
      of(quantise_operation, "numbers_not_finite",
         "NaN and infinities among N(0, magnitude): none of them enters a scale", {1, 100},
         numbers_not_finite),
      of(select_operation, "score_ranks",
         "every key of a row has another score, far from the others: 1 for positive ones, -1 for "
         "negative ones, 0 for rows of either kind",
         {0, 1, -1}, score_ranks),
      of(select_operation, "score_ties",
         "scores of a few values, positive, negative and 0: the last place is shared by many", {0},
         score_ties),
      of(select_operation, "scores_not_finite",
         "N(0, 1), and keys with a NaN or an infinity, whose scores come first", {1},
         scores_not_finite),
  };
  return table;
}

void round_values(Tensor<float>& tensor, ElementType format, const InputSpec& spec) {
  // Host values are fp32 already.
  if (format == ElementType::fp32 && !spec.round_to_integers) return;
  const double limit = format_of(format).max_finite;
  for (float& value : tensor.values()) {
    double x = spec.round_to_integers ? std::nearbyint(value) : value;
    if (std::isfinite(x)) x = std::clamp(x, -limit, limit);
    value = static_cast<float>(round_to(format, x));
  }
}

/// Families of Q, K and V serve the quantiser, too: K is its X. Those whose point is Q or V would
/// give it N(0, 1) again and again.
bool gives_keys(const InputFamily& family, const Operation& asked) {
  const bool is_of_keys = !family.name.ends_with("_q") && !family.name.ends_with("_v");
  return &asked == &quantise_operation && family.operation == &forward_operation && is_of_keys;
}

/// Families of Q, K and V serve the choice of keys, which has no V.
bool gives_queries_and_keys(const InputFamily& family, const Operation& asked) {
  return &asked == &select_operation && family.operation == &forward_operation &&
         !family.name.ends_with("_v");
}

/// Gives all entries the first keys and values of entry 0.
void share_prefix(const Problem& problem, Inputs& inputs) {
  const auto specs = problem.operation->inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (specs[i].rows != Rows::keys) continue;
    Tensor<float>& tensor = inputs[InputIndex{i}];
    const Shape& shape = tensor.shape();
    for (std::int64_t b = 1; b < shape[0]; ++b) {
      for (std::int64_t h = 0; h < shape[1]; ++h) {
        for (std::int64_t n = 0; n < std::min(problem.shared_keys, shape[2]); ++n) {
          std::ranges::copy(tensor.row(0, h, n), tensor.row(b, h, n).begin());
        }
      }
    }
  }
}

}  // namespace

bool InputFamily::serves(const Operation& asked) const {
  return operation == &asked || (asked.extends != nullptr && operation == asked.extends) ||
         gives_keys(*this, asked) || gives_queries_and_keys(*this, asked);
}

const std::vector<InputFamily>& all_input_families() {
  return families();
}

std::vector<const InputFamily*> families_of(const Operation& operation) {
  std::vector<const InputFamily*> of_it;
  for (const InputFamily& family : families()) {
    if (family.serves(operation)) of_it.push_back(&family);
  }
  return of_it;
}

void add_input_family(InputFamily family) {
  for (const InputFamily& known : families()) {
    if (known.name == family.name) {
      throw InvalidInput(fmt::format("input family '{}' exists already", family.name));
    }
  }
  families().push_back(std::move(family));
}

const InputFamily& input_family(std::string_view name) {
  std::vector<std::string> names;
  for (const InputFamily& family : families()) {
    if (family.name == name) return family;
    names.push_back(family.name);
  }
  throw InvalidInput(
      fmt::format("input family '{}' is unknown; allowed: {}", name, fmt::join(names, ", ")));
}

Inputs make_inputs(const Problem& problem, const InputSpec& spec) {
  const InputFamily& family = input_family(spec.family);
  if (family.unsupported) {
    if (const auto reason = family.unsupported(problem)) throw InvalidInput(*reason);
  }
  Inputs inputs = family.make(problem, spec);
  if (gives_keys(family, *problem.operation)) inputs = {std::move(inputs[forward::k])};
  if (gives_queries_and_keys(family, *problem.operation)) {
    inputs = {std::move(inputs[forward::q]), std::move(inputs[forward::k])};
  }
  const auto specs = problem.operation->inputs();
  for (std::size_t i = inputs.size(); i < specs.size(); ++i) {
    inputs[InputIndex{i}] = specs[i].draw != nullptr
                                ? specs[i].draw(problem, spec)
                                : normals(specs[i].shape(problem), spec.seed, stream_rest + i);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const InputIndex index{i};
    const TensorSpec& tensor = (*problem.operation)[index];
    if (tensor.rows == Rows::neither) continue;
    // Operation::complete makes codes of the values as they are.
    const ElementType format = tensor.format(problem);
    round_values(inputs[index], is_code(format) ? ElementType::fp32 : format, spec);
  }
  share_prefix(problem, inputs);
  const auto complete = problem.operation->complete;
  if (complete != nullptr && !family.is_complete) complete(problem, inputs);
  return inputs;
}

}  // namespace attest
