// The table of the fields of a Problem.
#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "core/attention/operation.hpp"
#include "core/attention/problem_field.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/combine.hpp"
#include "core/operations/quantise.hpp"
#include "core/operations/quantised.hpp"
#include "core/operations/select.hpp"

namespace attest {
namespace {

// Far past what a grid of a GPU has in its second and third dimension, 65,535.
constexpr double longest = 1 << 24, most_heads = 1 << 20, widest = 1024;
// Of a generator: a key of 64 bits as far as double counts, a counter's word.
constexpr double largest_key = 0x1p52, largest_word = 0xFFFFFFFFU;
constexpr double largest_real = std::numeric_limits<float>::max();

bool has_window(const Problem& problem) {
  return is_window(problem.mask);
}

bool is_forward(const Problem& problem) {
  return problem.operation == &forward_operation;
}

bool is_combine(const Problem& problem) {
  return problem.operation == &combine_operation;
}

bool is_backward(const Problem& problem) {
  return problem.operation == &backward_operation;
}

bool is_select(const Problem& problem) {
  return problem.operation == &select_operation;
}

bool is_quantised(const Problem& problem) {
  return problem.operation == &quantised_operation;
}

/// True of operations of the score modifications that backward passes have.
bool goes_with_backward(const Problem& problem) {
  return is_forward(problem) || is_backward(problem);
}

bool has_lists(const Problem& problem) {
  return goes_with_backward(problem) && problem.list_seed != 0;
}

/// Problems whose K has codes: given, or to be made.
bool has_codes_of_k(const Problem& problem) {
  return is_quantised(problem) || problem.operation == &quantise_operation;
}

std::vector<std::string_view> names_of_operations() {
  std::vector<std::string_view> names;
  for (const Operation* operation : all_operations()) names.push_back(operation->name);
  return names;
}

std::vector<std::string_view> names_of_masks() {
  std::vector<std::string_view> names;
  for (const Mask mask : all_masks()) names.push_back(name_of(mask));
  return names;
}

std::vector<std::string_view> names_of_element_types() {
  std::vector<std::string_view> names;
  for (const ElementType type : all_element_types()) names.push_back(format_of(type).name);
  return names;
}

constexpr std::array<std::string_view, 2> names_of_values{"own", "in_keys"};
constexpr std::array<std::string_view, 2> names_of_lse_gradients{"zero", "given"};

constexpr std::array<std::string_view, 2> names_of_sinks{"none", "given"};
constexpr std::array<std::string_view, 5> names_of_biases{"none", "full", "heads", "entries",
                                                          "shared"};

using FieldRows = std::array<ProblemField, 42>;

FieldRows make_rows() {
  static const std::vector<std::string_view> masks = names_of_masks();
  static const std::vector<std::string_view> element_types = names_of_element_types();
  static const std::vector<std::string_view> operations = names_of_operations();
  return {{
      {.name = "operation",
       .summary = "what is computed",
       .member = &Problem::operation,
       .choices = operations,
       .is_axis = false},
      {.name = "batch",
       .summary = "entries of the batch",
       .member = &Problem::batch,
       .low = 1,
       .high = most_heads,
       .prefix = "b",
       .example = "b8",
       .is_always_written = true},
      {.name = "query_heads",
       .summary = "query heads",
       .member = &Problem::query_heads,
       .low = 1,
       .high = most_heads,
       .prefix = "h",
       .example = "h12",
       .is_always_written = true,
       .axis = "heads"},
      {.name = "kv_heads",
       .summary = "heads of K and V; heads if not given",
       .member = &Problem::kv_heads,
       .low = 1,
       .high = most_heads,
       .prefix = "/",
       .example = "h12/4",
       .is_always_written = true,
       .follow = [](Problem& p) { p.kv_heads = p.query_heads; }},
      {.name = "query_len",
       .summary = "queries",
       .member = &Problem::query_len,
       .low = 0,
       .high = longest,
       .prefix = "q",
       .example = "q4096",
       .is_always_written = true,
       .in_tuning_key = InTuningKey::as_near_bucket,
       .feature = FieldFeature{
           .name = "no queries",
           .flag = &Features::no_queries,
           .refusal = "needs at least one query",
           .is_used = [](const Problem& p) { return p.query_len == 0; },
           .take_away = [](Problem& p) { p.query_len = std::max<std::int64_t>(1, p.query_len); }}},
      {.name = "key_len",
       .summary = "keys; query_len if not given",
       .member = &Problem::key_len,
       .low = 0,
       .high = longest,
       .prefix = "k",
       .example = "k4096",
       .is_always_written = true,
       .follow = [](Problem& p) { p.key_len = p.query_len; },
       .in_tuning_key = InTuningKey::as_near_bucket},
      {.name = "head_dim",
       .summary = "columns of Q and K",
       .member = &Problem::head_dim,
       .low = 1,
       .high = widest,
       .prefix = "d",
       .example = "d64",
       .is_always_written = true,
       .in_tuning_key = InTuningKey::exactly},
      {.name = "value_dim",
       .summary = "columns of V and O; head_dim if not given",
       .member = &Problem::value_dim,
       .low = 0,
       .high = widest,
       .prefix = "dv",
       .example = "dv64",
       .in_effect = [](const Problem& p) { return p.output_dim(); },
       .in_tuning_key = InTuningKey::exactly,
       .feature =
           FieldFeature{.name = "value_dim",
                        .flag = &Features::value_dim,
                        .refusal = "has no value_dim apart from head_dim",
                        .is_used = [](const Problem& p) { return p.output_dim() != p.head_dim; }}},
      {.name = "values",
       .summary = "where V comes from: a tensor of its own, or the first columns of K",
       .member = &Problem::values,
       .choices = names_of_values,
       .prefix = "values_",
       .example = "values_in_keys",
       .in_tuning_key = InTuningKey::no,  // head_dim and value_dim say enough
       .feature = FieldFeature{.name = "values_in_keys",
                               .flag = &Features::values_in_keys,
                               .refusal = "does not read V from the first columns of K"}},
      {.name = "mask",
       .summary = "which keys a query sees",
       .member = &Problem::mask,
       .choices = masks,
       .is_always_written = true,
       .in_tuning_key = InTuningKey::by_mask_name},
      {.name = "window_left",
       .summary = "keys before the diagonal under a window mask; -1: no end",
       .member = &Window::left,
       .low = -1,
       .high = longest,
       .prefix = "left",
       .example = "left64",
       .belongs_to = has_window,
       .in_tuning_key = InTuningKey::as_bucket},
      {.name = "window_right",
       .summary = "keys after the diagonal under a window mask; -1: no end",
       .member = &Window::right,
       .low = -1,
       .high = longest,
       .prefix = "right",
       .example = "right0",
       .belongs_to = has_window,
       .in_tuning_key = InTuningKey::as_bucket},
      {.name = "element_type",
       .summary = "format of Q, K, V and O",
       .member = &Problem::element_type,
       .choices = element_types,
       .is_always_written = true,
       .in_tuning_key = InTuningKey::by_name},
      {.name = "scale",
       .summary = "of the scores; 1 / sqrt(head_dim) if not given",
       .member = &Problem::scale,
       .low = -largest_real,
       .high = largest_real,
       .allowed = "any finite number",
       .prefix = "scale",
       .example = "scale0.125",
       .follow =
           [](Problem& p) { p.scale = default_scale(std::max<std::int64_t>(p.head_dim, 1)); }},
      {.name = "softcap",
       .summary = "c of c tanh(s / c); 0: none",
       .member = &Problem::softcap,
       .low = 0,
       .high = largest_real,
       .allowed = "0 (none) or a finite positive number",
       .prefix = "softcap",
       .example = "softcap30",
       .in_tuning_key = InTuningKey::whether_used,
       .feature =
           FieldFeature{
               .name = "softcap", .flag = &Features::softcap, .refusal = "has no softcap"}},
      {.name = "length_seed",
       .summary = "draws a length for each entry of the batch; 0: all are full",
       .member = &Problem::length_seed,
       .prefix = "lengths",
       .example = "lengths7",
       .in_tuning_key = InTuningKey::whether_used,
       .feature = FieldFeature{.name = "lengths",
                               .flag = &Features::lengths,
                               .refusal = "has no lengths of single entries of the batch"}},
      {.name = "padding_seed",
       .summary = "draws hidden keys; 0: none",
       .member = &Problem::padding_seed,
       .prefix = "padding",
       .example = "padding7",
       .in_tuning_key = InTuningKey::whether_used,
       .feature =
           FieldFeature{
               .name = "padding", .flag = &Features::padding, .refusal = "has no padding of keys"}},
      {.name = "shared_keys",
       .summary = "first keys, which are the same in all entries of the batch",
       .member = &Problem::shared_keys,
       .low = 0,
       .high = longest,
       .prefix = "shared",
       .example = "shared512",
       .in_tuning_key = InTuningKey::no},
      {.name = "parts",
       .summary = "partial results that are merged",
       .member = &Problem::parts,
       .low = 1,
       .high = most_heads,
       .prefix = "parts",
       .example = "parts4",
       .is_axis = false,
       .belongs_to = is_combine},
      {.name = "partial_type",
       .summary = "format of partial results",
       .member = &Problem::partial_type,
       .choices = element_types,
       .prefix = "partials",
       .example = "partialsfp16",
       .is_axis = false,
       .belongs_to = is_combine},
      {.name = "top_k",
       .summary = "keys that are chosen for a query, the largest by score",
       .member = &Problem::top_k,
       .low = 0,
       .high = longest,
       .prefix = "top",
       .example = "top2048",
       .belongs_to = is_select},
      {.name = "dlse",
       .summary = "the gradient with respect to LSE, dLSE: zero, or a tensor that is given",
       .member = &Problem::lse_gradient,
       .choices = names_of_lse_gradients,
       .prefix = "dlse_",
       .example = "dlse_given",
       .is_axis = false,
       .belongs_to = is_backward,
       .feature = FieldFeature{.name = "dlse",
                               .flag = &Features::lse_gradient,
                               .refusal = "takes no gradient with respect to LSE"}},
      {.name = "q_code",
       .summary = "codes of Q; none: its format is element_type",
       .member = &Codes::q,
       .choices = names_of_codes(),
       .prefix = "qcode_",
       .example = "qcode_e4m3",
       .belongs_to = is_quantised},
      {.name = "k_code",
       .summary = "codes of K; none: its format is element_type",
       .member = &Codes::k,
       .choices = names_of_codes(),
       .prefix = "kcode_",
       .example = "kcode_int8",
       .belongs_to = has_codes_of_k},
      {.name = "v_code",
       .summary = "codes of V; none: its format is element_type",
       .member = &Codes::v,
       .choices = names_of_codes(),
       .prefix = "vcode_",
       .example = "vcode_int8",
       .belongs_to = is_quantised},
      {.name = "q_scales",
       .summary = "which elements of a head of Q share a scale",
       .member = &Codes::q_scales,
       .choices = names_of_scales(),
       .prefix = "qscales_",
       .example = "qscales_head",
       .belongs_to = is_quantised},
      {.name = "k_scales",
       .summary = "which elements of a head of K share a scale",
       .member = &Codes::k_scales,
       .choices = names_of_scales(),
       .prefix = "kscales_",
       .example = "kscales_row",
       .belongs_to = has_codes_of_k},
      {.name = "v_scales",
       .summary = "which elements of a head of V share a scale",
       .member = &Codes::v_scales,
       .choices = names_of_scales(),
       .prefix = "vscales_",
       .example = "vscales_column",
       .belongs_to = is_quantised},
      {.name = "scale_format",
       .summary = "format of scales: fp32, or ue8m0, powers of two in a byte",
       .member = &Codes::scale_format,
       .choices = names_of_scale_formats(),
       .prefix = "scales_",
       .example = "scales_ue8m0",
       .belongs_to = has_codes_of_k,
       .feature = FieldFeature{.name = "scale_format",
                               .flag = &Features::ue8m0_scales,
                               .refusal = "takes no scales of ue8m0"}},
      {.name = "sinks",
       .summary = "a learned sink of each query head: none, or a tensor that is given",
       .member = &Problem::sinks,
       .choices = names_of_sinks,
       .prefix = "sinks_",
       .example = "sinks_given",
       .belongs_to = goes_with_backward,
       .feature =
           FieldFeature{
               .name = "sinks", .flag = &Features::sinks, .refusal = "has no learned sinks"}},
      {.name = "slopes",
       .summary = "ALiBi's slope of each query head: none, or a tensor that is given",
       .member = &Problem::slopes,
       .choices = names_of_sinks,
       .prefix = "slopes_",
       .example = "slopes_given",
       .belongs_to = goes_with_backward,
       .feature =
           FieldFeature{
               .name = "slopes", .flag = &Features::slopes, .refusal = "has no slopes of ALiBi"}},
      {.name = "bias",
       .summary = "a number added to each score: none, or a tensor of each pair of each head and "
                  "entry, or one that entries, heads or both share",
       .member = &Problem::bias,
       .choices = names_of_biases,
       .prefix = "bias_",
       .example = "bias_heads",
       .belongs_to = goes_with_backward,
       .feature =
           FieldFeature{
               .name = "bias", .flag = &Features::bias, .refusal = "adds no bias to scores"}},
      {.name = "prefix_seed",
       .summary = "draws a number of first keys of each entry that all of its queries see; 0: none",
       .member = &Problem::prefix_seed,
       .prefix = "prefix",
       .example = "prefix7",
       .belongs_to = goes_with_backward,
       .feature = FieldFeature{.name = "prefix",
                               .flag = &Features::prefix,
                               .refusal = "has no prefix that all queries see"}},
      {.name = "document_seed",
       .summary = "draws documents in each entry, whose queries see no other's keys; 0: one",
       .member = &Problem::document_seed,
       .prefix = "documents",
       .example = "documents7",
       .belongs_to = goes_with_backward,
       .feature = FieldFeature{.name = "documents",
                               .flag = &Features::documents,
                               .refusal = "has no documents in an entry"}},
      {.name = "list_seed",
       .summary =
           "draws lists of the keys that queries see, of n 2^32 with one item in n each; 0: none",
       .member = &Problem::list_seed,
       .prefix = "lists",
       .example = "lists7",
       .belongs_to = goes_with_backward,
       .feature = FieldFeature{.name = "lists",
                               .flag = &Features::lists,
                               .refusal = "takes no lists of keys",
                               .take_away = take_away_lists}},
      {.name = "list_rows",
       .summary = "queries that share a list of keys",
       .member = &Problem::list_rows,
       .low = 1,
       .high = longest,
       .prefix = "listrows",
       .example = "listrows128",
       .belongs_to = has_lists},
      {.name = "list_keys",
       .summary = "keys of an item of a list",
       .member = &Problem::list_keys,
       .low = 1,
       .high = longest,
       .prefix = "listkeys",
       .example = "listkeys64",
       .belongs_to = has_lists},
      {.name = "dropout",
       .summary = "probability of a weight to fall; 0: none does",
       .member = &Problem::dropout,
       .low = 0,
       .high = 1,
       .allowed = "0 (none) to 1",
       .prefix = "dropout",
       .example = "dropout0.1",
       .is_axis = false,
       .belongs_to = goes_with_backward,
       .feature = FieldFeature{.name = "dropout",
                               .flag = &Features::dropout,
                               .refusal = "has no dropout",
                               .take_away =
                                   [](Problem& p) {
                                     p.dropout = 0;
                                     p.dropout_seed = p.dropout_offset = 0;
                                   }}},
      {.name = "dropout_seed",
       .summary = "key of the generator that says which weights fall",
       .member = &Problem::dropout_seed,
       .low = 0,
       .high = largest_key,
       .prefix = "philox",
       .example = "philox7",
       .is_axis = false,
       .belongs_to = goes_with_backward},
      {.name = "dropout_offset",
       .summary = "counter from which the generator starts",
       .member = &Problem::dropout_offset,
       .low = 0,
       .high = largest_word,
       .prefix = "offset",
       .example = "offset4",
       .is_axis = false,
       .belongs_to = goes_with_backward},
      {.name = "gate",
       .summary = "a number that each element of O is multiplied by: none, or a tensor like O",
       .member = &Problem::gate,
       .choices = names_of_sinks,
       .prefix = "gate_",
       .example = "gate_given",
       .belongs_to = is_forward,
       .feature =
           FieldFeature{
               .name = "gate", .flag = &Features::gate, .refusal = "applies no gate to O"}},
      {.name = "residual",
       .summary = "a number added to each element of O, after the gate: none, or a tensor like O",
       .member = &Problem::residual,
       .choices = names_of_sinks,
       .prefix = "residual_",
       .example = "residual_given",
       .belongs_to = is_forward,
       .feature = FieldFeature{.name = "residual",
                               .flag = &Features::residual,
                               .refusal = "adds no residual to O"}},
  }};
}

}  // namespace

std::span<const ProblemField> problem_fields() {
  static const FieldRows rows = make_rows();
  return rows;
}

}  // namespace attest
