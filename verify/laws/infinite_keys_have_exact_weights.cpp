#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/oracle.hpp"
#include "verify/cases/planting.hpp"
#include "verify/judge/streams.hpp"
#include "verify/judge/variation.hpp"

namespace attest {
namespace law_infinite_keys_have_exact_weights {

std::int64_t drawn(const Run& run, std::uint64_t index, std::int64_t bound) {
  return random_below(run.the_case().inputs.seed, stream_infinite_keys, index, bound);
}

/// Dimension d of some keys of one head becomes the same infinity.
struct InfiniteKeys {
  std::int64_t b = 0, kv_head = 0, d = 0;
  KeyRange keys;
  float infinity = 0;
};

/// One key, or all of a key tile: a tile whose scores are all -infinity has no maximum. The sign is
/// such that some row gets scores of -infinity.
InfiniteKeys drawn_keys(Run& run) {
  const Problem& p = run.problem();
  const Spot spot = draw_spot(run, stream_infinite_keys, Spot::Where::key);
  InfiniteKeys at;
  at.b = spot.b;
  at.kv_head = spot.head;
  at.d = spot.d;
  const std::int64_t tile = std::max<std::int64_t>(run.the_case().plan.key_tile, 1);
  const std::int64_t first = drawn(run, 8, 3) == 0 ? 0 : spot.row / tile * tile;
  at.keys = drawn(run, 9, 2) == 0 ? KeyRange{spot.row, spot.row + 1}
                                  : KeyRange{first, std::min(first + tile, p.key_len)};
  const std::int64_t group = p.query_heads / p.kv_heads;
  const float q = run.inputs()[forward::q].at(
      at.b, at.kv_head * group + drawn(run, 10, group),
      drawn(run, 11, std::max<std::int64_t>(p.query_len_of(at.b), 1)), at.d);
  at.infinity = -std::copysign(std::numeric_limits<float>::infinity(), q * p.scale);
  return at;
}

/// Number of the planted head's rows that the 113-bit oracle answers without the infinite keys:
/// some milliseconds each, of long sequences fewer.
std::int64_t rows_for_the_oracle(const Problem& p) {
  constexpr std::int64_t work = std::int64_t{1} << 22;
  return std::clamp<std::int64_t>(work / (p.key_len * p.head_dim), 1, 16);
}

enum class Score { minus_infinity, not_below_infinity, unclear };

/// Score of an infinite key for a query element: -infinity, or +infinity or NaN. Unclear where the
/// scale is 0, which kernels apply at different places, and where a kernel may flush it, the
/// element or their product to 0.
Score score_of(const Problem& p, float q, float infinity) {
  if (q == 0.0F && p.scale != 0.0F) return Score::not_below_infinity;
  const double least = 2 * fp32_arithmetic.min_normal;
  const double size = std::abs(static_cast<double>(q)), scale = std::abs(p.scale);
  if (size < format_of(p.element_type).min_normal || scale < least || size * scale < least) {
    return Score::unclear;
  }
  const bool is_negative = std::signbit(q) != std::signbit(p.scale);
  return is_negative != std::signbit(infinity) ? Score::minus_infinity : Score::not_below_infinity;
}

/// The keys that a row sees and that are not infinite.
std::vector<std::int64_t> finite_keys(const Problem& p, const InfiniteKeys& at, std::int64_t n) {
  std::vector<std::int64_t> keys = visible_keys_of(p, at.b, n);
  std::erase_if(keys, [&](std::int64_t key) { return at.keys.holds(key); });
  return keys;
}

/// The launched row is that without the infinite keys, within the bounds of a row in which they are
/// hidden.
Check check_without(Run& run, const Launch& launch, const Shape& at,
                    const std::vector<std::int64_t>& keys) {
  const auto [b, h, n, unused] = at;
  const InPhase phase(run.clock(), Phase::reference);
  const OtherCall entry = entry_alone(run.the_case(), b, keys).call;
  const Inputs inputs = entry.inputs(run.inputs());
  Problem without = entry.the_case.problem;
  without.mask = Mask::none;  // these are the keys that it left
  without.window = {};
  const OracleRow<Quad> row = oracle_row<Quad>(without, inputs, 0, h, n);
  const PrecisionPlan precision =
      run.kernel().precision(run.problem(), run.the_case().plan).as<PrecisionPlan>();
  Problem with_gaps = run.problem();
  with_gaps.padding_seed = 1;  // keys of no weight lie between the others, whichever they are
  const BoundConstants c = bound_constants(
      precision, with_gaps, static_cast<std::int64_t>(keys.size()), magnitudes_of(run.inputs()));
  const OracleBound<Quad> bound =
      oracle_bound(without, inputs, 0, h, row, c, precision.scale_folded_into_q);
  // plugin.h asks no more of kernels from outside: with finite inputs no score is -infinity, so a
  // kernel may do without a guard for tiles that have no other.
  const bool nan_will_do = !run.kernel().plugin.empty();
  for (std::int64_t d = 0; d <= run.problem().output_dim(); ++d) {
    const bool is_lse = d == run.problem().output_dim();
    const auto column = static_cast<std::size_t>(d);
    WorstElement element{.index = {b, h, n, is_lse ? 0 : d}};
    element.got = is_lse ? launch.outputs[forward::lse].at(b, h, n, 0)
                         : launch.outputs[forward::o].at(b, h, n, d);
    element.want = static_cast<double>(is_lse ? row.lse : row.o[column]);
    element.bound = static_cast<double>(is_lse ? bound.lse : bound.o[column]);
    element.ratio = error_over_bound(element.got, element.want, element.bound);
    if (!std::isfinite(element.bound) || within(1.0, element.ratio)) continue;
    if (nan_will_do && std::isnan(element.got)) continue;
    return Check::failed_at(is_lse ? "LSE" : "O", element,
                            "a key whose score is -infinity must not count");
  }
  return Check::passed();
}

const LawRegistration registration{
    {.name = "infinite_keys_have_exact_weights",
     .statement = "infinities in K that make scores of -infinity leave the answer without those "
                  "keys, within its bounds (NaN will do from a plugin; nothing is asked where no "
                  "other key is left); those that make +infinity or NaN leave no finite LSE; rows "
                  "that see none of them keep their bits",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     // A softcap makes a finite score of an infinite one. Parts of an infinity are NaN.
     .operations = {&forward_operation},
     .needs_own_values = true,
     .applies =
         [](Run& run) {
           const Problem& p = run.problem();
           return run.kernel().ignores_hidden_nan && run.kernel().gives(forward::lse) &&
                  p.key_len > 0 && p.query_len > 0 && p.softcap == 0 && !has_modifications(p) &&
                  !depends_on_places(p) &&
                  run.kernel()
                          .precision(p, run.the_case().plan)
                          .as<PrecisionPlan>()
                          .score_parts.format == Parts::Format::whole;
         },
     .check =
         [](Run& run) {
           const Problem& p = run.problem();
           const InfiniteKeys planted = drawn_keys(run);
           Inputs inputs = run.inputs();
           for (std::int64_t key = planted.keys.begin; key < planted.keys.end; ++key) {
             inputs[forward::k].at(planted.b, planted.kv_head, key, planted.d) = planted.infinity;
           }
           const Launch launch = run.launch(run.the_case(), inputs);
           const Answer& answer = run.answer();
           const std::int64_t group_rows =
               p.query_heads / p.kv_heads * std::max<std::int64_t>(p.query_len_of(planted.b), 1);
           const auto sees_them = [&](std::int64_t b, std::int64_t h, std::int64_t n) {
             return b == planted.b && p.kv_head_of(h) == planted.kv_head &&
                    static_cast<std::int64_t>(finite_keys(p, planted, n).size()) <
                        visible_key_count(p, b, n);
           };
           const Check unmoved =
               check_agree(run.kernel(), launch.outputs, run.base().outputs,
                           agreement_of(run, {.neighbours = true}),
                           "an infinite key reached a row that does not see it",
                           [&](OutputIndex, std::int64_t b, std::int64_t h, std::int64_t n,
                               std::int64_t) { return !sees_them(b, h, n); });
           if (unmoved.status == Check::Status::failed) return unmoved;
           return check_rows(p, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
             if (!sees_them(b, h, n)) return Check::passed();
             const std::vector<std::int64_t> finite = finite_keys(p, planted, n);
             const float got = launch.outputs[forward::lse].at(b, h, n, 0);
             if (!std::isfinite(answer[forward::lse].bound.at(b, h, n, 0))) return Check::passed();
             switch (
                 score_of(p, run.inputs()[forward::q].at(b, h, n, planted.d), planted.infinity)) {
               case Score::unclear:
                 return Check::passed();
               case Score::not_below_infinity:
                 if (std::isnan(got) || got == std::numeric_limits<float>::infinity() ||
                     (run.kernel().nan_rows_may_have_empty_lse && std::isinf(got))) {
                   return Check::passed();
                 }
                 return Check::failed_at("LSE",
                                         {.index = {b, h, n, 0},
                                          .got = got,
                                          .want = std::numeric_limits<double>::infinity()},
                                         "a score of +infinity or NaN was swallowed");
               case Score::minus_infinity:
                 break;
             }
             const std::int64_t row = h * p.query_len + n;
             if (finite.empty() || drawn(run, 16 + static_cast<std::uint64_t>(row), group_rows) >=
                                       rows_for_the_oracle(p)) {
               return Check::passed();
             }
             return check_without(run, launch, {b, h, n, 0}, finite);
           });
         }}};

}  // namespace law_infinite_keys_have_exact_weights
}  // namespace attest
