// Kernels that are honest about what they do, and their twins. `honest/X` does something that it
// declares; `twin/X` does the same and does not declare it, or declares a shape and ignores it.
// tests/plugin_claims_test.cpp runs them.
#include <attest/plugin.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugin/testing/attention_ways.hpp"

namespace {

using namespace ways;

/// Of batch, head and row.
bool are_multiples(const AttestTensor& tensor, std::int64_t elements) {
  return std::ranges::all_of(std::span(tensor.strides).first(3),
                             [&](std::int64_t stride) { return stride % elements == 0; });
}

const char* refusal(const AttestRun& run) {
  const AttestProblem& p = *run.problem;
  const Ways& ways = ways_of(&p);
  if (run.scratch_bytes != 64) return "scratch_bytes() was asked without user_data";
  if (p.query_len % ways.multiple != 0 || p.key_len % ways.multiple != 0) {
    return "lengths must be multiples of 64";
  }
  if (p.query_len == 0 && ways.ignores == Ignores::no_queries) return "no queries";
  const Tensors t(run);
  for (const AttestTensor* tensor : {&t.q, &t.k, &t.v, &t.o}) {
    if (ways.checks_lone_strides && !are_multiples(*tensor, 4))
      return "every stride must be a multiple of 16 bytes";
  }
  return nullptr;
}

const char* run(const AttestRun* run) {
  static unsigned calls = 0;
  const AttestProblem& p = *run->problem;
  const Ways& ways = ways_of(&p);
  if (const char* const sentence = refusal(*run)) return sentence;
  const unsigned mode = _mm_getcsr();
  if (ways.flushes) _mm_setcsr(mode | _MM_FLUSH_ZERO_ON);
  const bool backwards = ways.turns_order && ++calls % 2 == 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) attend_head(*run, b, h, backwards);
  }
  _mm_setcsr(mode);
  return nullptr;
}

std::uint64_t scratch_bytes(const AttestProblem* problem, const AttestPlan*) {
  return problem->user_data == nullptr ? 0 : 64;
}

const char* unsupported(const AttestProblem* problem, const AttestPlan*) {
  return problem->user_data == nullptr ? "no user_data" : nullptr;
}

void refine(const AttestProblem* problem, const AttestPlan*, AttestPrecision* precision) {
  const Ways& ways = ways_of(problem);
  if (ways.splits_by_batch) precision->splits = problem->batch == 1 ? 3 : 1;
}

/// A way of being different, and how it is declared.
struct Entry {
  std::string name;
  Ways ways;
  void (*declare)(AttestKernel&, AttestPrecision&);
  std::uint32_t features = 0;  ///< of both: the twin ignores one of them
};

constexpr std::uint32_t all_masks =
    ATTEST_NO_MASK | ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT;
constexpr std::uint32_t windows = ATTEST_WINDOW_TOP_LEFT | ATTEST_WINDOW_BOTTOM_RIGHT;
constexpr std::uint32_t all_features =
    ATTEST_SOFTCAP | ATTEST_LENGTHS | ATTEST_PADDING | ATTEST_VALUE_DIM | ATTEST_NO_QUERIES |
    ATTEST_SINKS | ATTEST_SLOPES | ATTEST_BIAS | ATTEST_PREFIX | ATTEST_DOCUMENTS | ATTEST_LISTS |
    ATTEST_DROPOUT | ATTEST_GATE | ATTEST_RESIDUAL;
constexpr std::uint32_t epilogues = ATTEST_GATE | ATTEST_RESIDUAL;
void as_it_is(AttestKernel&, AttestPrecision&) {}

const std::vector<Entry>& entries() {
  using K = AttestKernel;
  using P = AttestPrecision;
  static const std::vector<Entry> table{
      {"order", {.turns_order = true}, [](K& k, P&) { k.is_not_deterministic = 1; }},
      {"reciprocal", {.reciprocal_error = 1.2e-6F}, [](K&, P& p) { p.division_error = 1.5e-6; }},
      {"flush_to_zero", {.flushes = true}, [](K&, P& p) { p.flushes_subnormals = 1; }},
      {"lagging_reference",
       {.reference = Reference::in_steps},
       [](K&, P& p) { p.reference_lag = lag; }},
      {"shared_reference",
       {.reference = Reference::voted},
       [](K& k, P&) { k.shares_reference = 1; }},
      {"vector_path", {.has_vector_path = true}, [](K& k, P&) { k.depends_on_alignment = 1; }},
      {"splits_by_batch",
       {.splits_by_batch = true},
       [](K& k, P&) { k.is_not_batch_invariant = 1; }},
      {"bf16_partials",
       {.stores_partials_in_bf16 = true},
       [](K&, P& p) { p.partial_format = ATTEST_BF16; }},
      {"tf32",
       {.reads_tf32 = true},
       [](K&, P& p) { p.score_parts = p.value_parts = {.format = ATTEST_TF32, .count = 1}; }},
      {"no_lse",
       {.writes_no_lse = true},
       [](K& k, P&) {
         static const char* const missing[] = {"lse"};
         k.missing_outputs = missing;
         k.missing_output_count = 1;
       }},
      {"empty_lse_of_nan",
       {.empties_lse_of_nan = true},
       [](K& k, P&) { k.nan_rows_may_have_empty_lse = 1; }},
      {"hidden_nan", {.multiplies_hidden = true}, [](K& k, P&) { k.spreads_hidden_nan = 1; }},
      {"lone_strides",
       {.checks_lone_strides = true},
       [](K& k, P&) { k.takes_any_lone_stride = 0; }},
      {"multiples_of_64",
       {.multiple = 64},
       [](K& k, P&) { k.query_len_multiple = k.key_len_multiple = 64; }},
      {"window", {.ignores = Ignores::window}, as_it_is},
      {"softcap", {.ignores = Ignores::softcap}, as_it_is, ATTEST_SOFTCAP},
      {"lengths", {.ignores = Ignores::lengths}, as_it_is, ATTEST_LENGTHS},
      {"padding", {.ignores = Ignores::padding}, as_it_is, ATTEST_PADDING},
      {"value_dim", {.ignores = Ignores::value_dim}, as_it_is, ATTEST_VALUE_DIM},
      {"no_queries", {.ignores = Ignores::no_queries}, as_it_is, ATTEST_NO_QUERIES},
      {"sinks", {.ignores = Ignores::sinks}, as_it_is, ATTEST_SINKS},
      {"slopes", {.ignores = Ignores::slopes}, as_it_is, ATTEST_SLOPES},
      {"bias", {.ignores = Ignores::bias}, as_it_is, ATTEST_BIAS},
      {"prefix", {.ignores = Ignores::prefix}, as_it_is, ATTEST_PREFIX},
      {"documents", {.ignores = Ignores::documents}, as_it_is, ATTEST_DOCUMENTS},
      {"lists", {.ignores = Ignores::lists}, as_it_is, ATTEST_LISTS},
      {"dropout", {.ignores = Ignores::dropout}, as_it_is, ATTEST_DROPOUT},
      {"gate", {.ignores = Ignores::gate}, as_it_is, ATTEST_GATE},
      {"residual", {.ignores = Ignores::residual}, as_it_is, ATTEST_RESIDUAL},
      {"epilogue_order", {.ignores = Ignores::epilogue_order}, as_it_is, epilogues},
      {"gate_head", {.ignores = Ignores::gate_head}, as_it_is, ATTEST_GATE},
      {"added_residual", {.ignores = Ignores::added_residual}, as_it_is, epilogues},
      {"empty_rows_residual", {.ignores = Ignores::empty_rows_residual}, as_it_is, epilogues},
  };
  return table;
}

/// Everything that a kernel points to.
struct Described {
  std::string name;
  Ways ways;
  AttestPrecision precision{};
  AttestKernel kernel{};
};

constexpr AttestFormat types[] = {ATTEST_FP32};

Described described(const Entry& entry, bool is_honest) {
  Described d{.name = (is_honest ? "honest/" : "twin/") + entry.name, .ways = entry.ways};
  if (is_honest) d.ways.ignores = Ignores::nothing;
  const bool is_shape = entry.ways.ignores != Ignores::nothing;
  d.precision.size = sizeof d.precision;
  if (entry.ways.reference == Reference::voted) d.precision.reference_lag = lag;
  if (entry.ways.stores_partials_in_bf16) {
    d.precision.splits = 3;
    d.precision.merge = ATTEST_MERGE_NORMALISED_SUMS;
  }
  if (entry.ways.splits_by_batch) d.precision.merge = ATTEST_MERGE_SUMS;
  d.kernel.size = sizeof d.kernel;
  d.kernel.element_types = types;
  d.kernel.element_type_count = 1;
  d.kernel.masks = all_masks | (is_shape ? windows : 0);
  d.kernel.features = is_honest && is_shape ? all_features : entry.features;
  if (entry.ways.checks_lone_strides) {
    d.kernel.stride_alignment_bytes = 16;
    d.kernel.takes_any_lone_stride = 1;
  }
  d.kernel.plan_count = 1;
  d.kernel.unsupported = unsupported;
  d.kernel.scratch_bytes = scratch_bytes;
  d.kernel.refine_precision = refine;
  d.kernel.run = run;
  if (is_honest) entry.declare(d.kernel, d.precision);
  return d;
}

}  // namespace

extern "C" const AttestPlugin* attest_plugin(std::uint32_t) {
  static const AttestPlan plans[] = {{nullptr, 0}};
  static std::vector<Described> all;
  static std::vector<const AttestKernel*> kernels;
  for (const Entry& entry : entries()) {
    all.push_back(described(entry, true));
    all.push_back(described(entry, false));
  }
  for (Described& d : all) {  // at their final places
    d.kernel.name = d.name.c_str();
    d.kernel.precision = &d.precision;
    d.kernel.user_data = &d.ways;
    d.kernel.plans = plans;
    kernels.push_back(&d.kernel);
  }
  static const AttestPlugin plugin{sizeof plugin, ATTEST_PLUGIN_VERSION, kernels.data(),
                                   kernels.size()};
  return &plugin;
}
