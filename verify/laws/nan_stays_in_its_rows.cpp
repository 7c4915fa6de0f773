#include <array>
#include <cmath>
#include <limits>

#include "core/inputs/random.hpp"
#include "verify/cases/planting.hpp"
#include "verify/judge/agreement.hpp"

namespace attest {
namespace {

constexpr std::uint64_t stream = 79;

/// Half of them in V: only there a weight that underflowed stands beside the NaN.
Spot::Where drawn_tensor(const Run& run) {
  constexpr std::array where{Spot::Where::query, Spot::Where::key, Spot::Where::value,
                             Spot::Where::value};
  return where[static_cast<std::size_t>(random_below(run.the_case().inputs.seed, stream, 0, 4))];
}

/// Does column `d` of O, or LSE for d = output_dim(), of a row depend on the spot? A value reaches
/// one column only.
bool depends_on(const Problem& p, const Spot& spot, std::int64_t b, std::int64_t h, std::int64_t n,
                std::int64_t d) {
  return sees(p, spot, b, h, n) && (spot.where != Spot::Where::value || d == spot.d);
}

/// The elements that depend on the NaN are NaN; LSE is -infinity where the kernel says that it may.
Check check_reached(const Run& run, const Outputs& outputs, const IsCompared& is_hit) {
  const Problem& p = run.problem();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return check_rows(p, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
    for (std::int64_t d = 0; d <= p.output_dim(); ++d) {
      const bool is_lse = d == p.output_dim();
      if (!is_hit(b, h, n, d) || (is_lse && !run.kernel().has_lse)) continue;
      const float got = is_lse ? outputs.lse.at(b, h, n, 0) : outputs.o.at(b, h, n, d);
      const bool may_be_empty = is_lse && run.kernel().nan_rows_may_have_empty_lse;
      if (std::isnan(got) || (may_be_empty && std::isinf(got) && got < 0)) continue;
      return Check::failed_at(is_lse ? "LSE" : "O",
                              {.index = {b, h, n, is_lse ? 0 : d}, .got = got, .want = nan},
                              "a NaN input was swallowed");
    }
    return Check::passed();
  });
}

const LawRegistration registration{
    {.name = "nan_stays_in_its_rows",
     .statement = "a NaN in Q, K or V makes NaN of the rows that see it (of its column, in V, "
                  "however small its weight) and changes no other bit; kernels that do not keep "
                  "a hidden NaN out are held to the first, for V",
     .cost = Law::Cost::more_launches,
     .applies =
         [](Run& run) {
           const Problem& p = run.problem();
           return p.key_len > 0 && p.query_len > 0 &&
                  (run.kernel().ignores_hidden_nan || drawn_tensor(run) == Spot::Where::value);
         },
     .check =
         [](Run& run) {
           const Problem& p = run.problem();
           const Spot spot = draw_spot(run, stream, drawn_tensor(run));
           Inputs inputs = run.inputs();
           element(inputs, spot) = std::numeric_limits<float>::quiet_NaN();
           const Launch launch = run.launch(run.the_case(), inputs);
           const auto is_hit = [&](std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d) {
             return depends_on(p, spot, b, h, n, d);
           };
           // Where all weights may vanish a row is as good as empty: nothing can be proven.
           const auto is_bounded = [&](std::int64_t b, std::int64_t h, std::int64_t n,
                                       std::int64_t d) {
             return std::isfinite(d == p.output_dim() ? run.answer().lse_bound.at(b, h, n, 0)
                                                      : run.answer().o_bound.at(b, h, n, d));
           };
           const Check reached = check_reached(
               run, launch.outputs, [&](auto... at) { return is_bounded(at...) && is_hit(at...); });
           if (reached.status == Check::Status::failed || !run.kernel().ignores_hidden_nan) {
             return reached;
           }
           return check_agree(launch.outputs, run.base().outputs,
                              agreement_of(run, {.neighbours = true}),
                              "a NaN input reached an element that does not depend on it",
                              [&](auto... at) { return is_bounded(at...) && !is_hit(at...); });
         }}};

}  // namespace
}  // namespace attest
