#include <cmath>
#include <limits>

#include "core/random.hpp"
#include "verify/property.hpp"

namespace attest {
namespace {

/// One element of Q or K that becomes NaN.
struct Spot {
  bool in_query = false;
  std::int64_t b = 0, head = 0, row = 0, d = 0;
};

Spot draw_spot(const Run& run) {
  const Problem& p = run.problem();
  const auto draw = [&](std::uint64_t index, std::int64_t bound) {
    return random_below(run.the_case().inputs.seed, 79, index, bound);
  };
  const bool in_query = draw(0, 2) == 0;
  return {.in_query = in_query,
          .b = draw(1, p.batch),
          .head = draw(2, in_query ? p.query_heads : p.kv_heads),
          .row = draw(3, in_query ? p.query_len : p.key_len),
          .d = draw(4, p.head_dim)};
}

bool sees(const Problem& p, const Spot& spot, std::int64_t b, std::int64_t h, std::int64_t n) {
  if (b != spot.b) return false;
  if (spot.in_query) return h == spot.head && n == spot.row && p.visible_keys(n) > 0;
  return p.kv_head_of(h) == spot.head && is_visible(p.mask, p.query_len, p.key_len, n, spot.row);
}

const PropertyRegistration registration{
    {.name = "nan_stays_in_its_rows",
     .statement =
         "a NaN in Q or K makes NaN of the rows that see it and changes no bit of the others",
     .cost = Property::Cost::more_launches,
     .applies = [](Run& run) { return run.problem().key_len > 0; },
     .check =
         [](Run& run) {
           const Problem& p = run.problem();
           const Spot spot = draw_spot(run);
           Inputs inputs = run.inputs();
           (spot.in_query ? inputs.q : inputs.k).at(spot.b, spot.head, spot.row, spot.d) =
               std::numeric_limits<float>::quiet_NaN();
           const Launch launch = run.launch(run.the_case(), inputs);
           for (std::int64_t b = 0; b < p.batch; ++b) {
             for (std::int64_t h = 0; h < p.query_heads; ++h) {
               for (std::int64_t n = 0; n < p.query_len; ++n) {
                 const bool must_be_nan = sees(p, spot, b, h, n);
                 for (std::int64_t d = 0; d <= p.head_dim; ++d) {
                   const bool is_lse = d == p.head_dim;
                   const Shape at{b, h, n, is_lse ? 0 : d};
                   const float got =
                       is_lse ? launch.outputs.lse.at(b, h, n, 0) : launch.outputs.o.at(b, h, n, d);
                   const float base = is_lse ? run.base().outputs.lse.at(b, h, n, 0)
                                             : run.base().outputs.o.at(b, h, n, d);
                   if (must_be_nan ? std::isnan(got) : same_bits(got, base)) continue;
                   const double want =
                       must_be_nan ? std::numeric_limits<double>::quiet_NaN() : base;
                   return Check::failed_at(
                       is_lse ? "LSE" : "O", {.index = at, .got = got, .want = want},
                       must_be_nan ? "a NaN input was swallowed"
                                   : "a NaN input reached a row that cannot see it");
                 }
               }
             }
           }
           return Check::passed();
         }}};

}  // namespace
}  // namespace attest
