#include "verify/cases/extras.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/attention/problem_field.hpp"
#include "verify/cases/lengths.hpp"

namespace attest {
namespace {

namespace gen = rc::gen;

/// Draws nothing where there is nothing to draw.
bool one_of(int count) {
  return count == 1 || *gen::inRange(0, count) == 0;
}

/// Number of cases with extras of which one has the feature, of a kernel that offers it. In the
/// order in which they are drawn: another one makes other cases of a seed.
struct Odds {
  bool Features::*feature;
  int one_of;
};
constexpr std::array<Odds, 6> odds_of_features{{{&Features::softcap, 4},
                                                {&Features::value_dim, 4},
                                                {&Features::lengths, 3},
                                                {&Features::padding, 3},
                                                {&Features::no_queries, 1},
                                                {&Features::values_in_keys, 6}}};

/// Sides of sliding windows in use are powers of two from here on.
constexpr std::int64_t long_side = 1024;

std::int64_t draw_side(std::int64_t tile, std::int64_t key_len) {
  const std::int64_t any = *gen::inRange<std::int64_t>(0, key_len + 1);
  if (key_len > long_side && one_of(3)) return long_side + *gen::inRange<std::int64_t>(-1, 3);
  return *gen::weightedElement<std::int64_t>(
      {{2, 0}, {1, 1}, {1, tile - 1}, {1, tile}, {1, tile + 1}, {1, key_len}, {2, -1}, {3, any}});
}

std::int64_t draw_value_dim(const KernelInfo& kernel, std::int64_t max_head_dim,
                            std::int64_t head_dim) {
  std::vector<std::int64_t> dims = kernel.head_dims;
  if (dims.empty()) dims = {8, 16, 24, 32, 40, 64, 72, 80, 96, 128, 1, 17, 59};
  std::erase_if(dims, [&](std::int64_t dim) { return dim > max_head_dim || dim == head_dim; });
  return dims.empty() ? 0 : *gen::elementOf(dims);
}

/// Numbers of a bias that a case may have.
constexpr std::int64_t most_biases = std::int64_t{1} << 20;

/// A bias as large as a case may have it: one that all heads and entries share, where each cannot
/// have its own.
Bias draw_bias(const Problem& problem) {
  const Bias drawn = *gen::element(Bias::full, Bias::heads, Bias::entries, Bias::shared);
  const std::int64_t pairs = problem.query_len * problem.key_len;
  if (pairs > most_biases) return Bias::none;
  const bool fits = pairs * problem.batch * problem.query_heads <= most_biases;
  return fits ? drawn : Bias::shared;
}

std::uint64_t draw_seed() {
  return std::max<std::uint64_t>(1, *gen::arbitrary<std::uint64_t>());
}

/// Lists of single keys a row, as an indexer gives them, of blocks, and of sizes in between.
void draw_lists(const KernelInfo& kernel, Problem& problem) {
  problem.list_seed = draw_seed();
  problem.list_rows = *gen::element<std::int64_t>(1, 1, 2, 3, 16, 64, 128);
  problem.list_keys = *gen::element<std::int64_t>(1, 1, 2, 3, 16, 64, 128);
  problem = with_needs_of(kernel, problem);
}

}  // namespace

// What users have most is causal: no key past the diagonal. Without an end on the right there are
// tiles in which a window begins and nothing ends.
Window draw_window(std::int64_t key_tile, std::int64_t key_len) {
  const std::int64_t tile = tile_or_usual(key_tile);
  Window window{.left = draw_side(tile, key_len), .right = draw_side(tile, key_len)};
  const int kind = *gen::inRange(0, 6);
  if (kind < 2) window.right = 0;
  if (kind == 2) window.right = -1;
  return window;
}

Extras draw_extras(const KernelInfo& kernel) {
  const Features& has = kernel.features;
  const bool has_window = std::ranges::any_of(kernel.masks, is_window);
  const bool has_feature = std::ranges::any_of(problem_fields(), [&](const ProblemField& field) {
    return field.feature && has.*field.feature->flag;
  });
  Extras extras;
  if (!has_window && !has_feature) return extras;
  if (one_of(2)) return extras;
  extras.window = has_window && one_of(2);
  for (const Odds& odds : odds_of_features) {
    extras.*odds.feature = has.*odds.feature && one_of(odds.one_of);
  }
  return extras;
}

void draw_extra_shapes(const Extras& extras, const KernelInfo& kernel, std::int64_t key_tile,
                       std::int64_t max_head_dim, Problem& problem) {
  if (extras.lengths) {
    problem.length_seed = draw_seed();
    // Self-attention of packed sequences is what users have most.
    if (one_of(2)) problem.key_len = problem.query_len;
  }
  if (extras.window) {
    std::vector<Mask> masks = kernel.masks;
    std::erase_if(masks, [](Mask mask) { return !is_window(mask); });
    problem.mask = *gen::elementOf(masks);
    problem.window = draw_window(key_tile, problem.key_len);
  }
  if (extras.value_dim) problem.value_dim = draw_value_dim(kernel, max_head_dim, problem.head_dim);
  if (extras.values_in_keys) problem.values = Values::in_keys;
  if (extras.padding) {
    problem.padding_seed = draw_seed();
    // Only there does the law padding_equals_removal apply.
    const bool has_none = std::ranges::find(kernel.masks, Mask::none) != kernel.masks.end();
    if (!extras.window && has_none && one_of(2)) problem.mask = Mask::none;
  }
}

LseGradient draw_lse_gradient(const KernelInfo& kernel) {
  const bool is_given = kernel.features.lse_gradient && one_of(3);
  return is_given ? LseGradient::given : LseGradient::zero;
}

void draw_score_modifications(const KernelInfo& kernel, Problem& problem) {
  const Features& has = kernel.features;
  const auto draws = [](bool is_offered, int of) { return is_offered && one_of(of); };
  const bool has_any = has.sinks || has.slopes || has.bias || has.prefix || has.documents ||
                       has.lists || has.dropout;
  if (!has_any || one_of(3)) return;
  if (draws(has.sinks, 2)) problem.sinks = Sinks::given;
  if (draws(has.slopes, 3)) problem.slopes = Slopes::given;
  if (draws(has.bias, 3)) problem.bias = draw_bias(problem);
  if (draws(has.prefix, 2) && !is_window(problem.mask)) problem.prefix_seed = draw_seed();
  if (draws(has.documents, 4)) problem.document_seed = draw_seed();
  if (draws(has.lists, 3)) draw_lists(kernel, problem);
  if (!draws(has.dropout, 4)) return;
  problem.dropout = *gen::element(0.1F, 0.1F, 0.5F, 0.9F, 1.0F);
  problem.dropout_seed = *gen::inRange<std::int64_t>(0, std::int64_t{1} << 40);
  problem.dropout_offset = *gen::inRange<std::int64_t>(0, std::int64_t{1} << 32);
}

void draw_epilogue(const KernelInfo& kernel, Problem& problem) {
  const Features& has = kernel.features;
  if ((!has.gate && !has.residual) || !one_of(3)) return;
  // Where the kernel offers both, one of three has both.
  const int kind = *gen::inRange(0, 3);
  if (has.gate && (kind != 1 || !has.residual)) problem.gate = OutputGate::given;
  if (has.residual && (kind != 0 || !has.gate)) problem.residual = Residual::given;
}

float draw_softcap(double magnitude) {
  const auto size = static_cast<float>(std::clamp(magnitude, 1.0, 1e6));
  return *gen::weightedElement<float>(
      {{2, 30.0F}, {1, 50.0F}, {2, 1.0F}, {1, 0.0625F}, {3, size * 0.5F}, {1, size * 100.0F}});
}

}  // namespace attest
