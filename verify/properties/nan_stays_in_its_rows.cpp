#include <cmath>
#include <limits>

#include "core/random.hpp"
#include "verify/agreement.hpp"

namespace attest {
namespace {

/// One element of Q, K or V that becomes NaN.
struct Spot {
  enum class Where { query, key, value } where = Where::query;
  std::int64_t b = 0, head = 0, row = 0, d = 0;
};

Spot draw_spot(const Run& run) {
  const Problem& p = run.problem();
  const auto draw = [&](std::uint64_t index, std::int64_t bound) {
    return random_below(run.the_case().inputs.seed, 79, index, bound);
  };
  Spot spot{.where = static_cast<Spot::Where>(draw(0, 3)), .b = draw(1, p.batch)};
  const bool in_query = spot.where == Spot::Where::query;
  spot.head = draw(2, in_query ? p.query_heads : p.kv_heads);
  // An entry without rows of its own takes any: nothing may then depend on it.
  const std::int64_t rows = in_query ? p.query_len_of(spot.b) : p.key_len_of(spot.b);
  spot.row = draw(3, rows > 0 ? rows : in_query ? p.query_len : p.key_len);
  spot.d = draw(4, spot.where == Spot::Where::value ? p.output_dim() : p.head_dim);
  return spot;
}

float& element(Inputs& inputs, const Spot& spot) {
  Tensor<float>& tensor = spot.where == Spot::Where::query ? inputs.q
                          : spot.where == Spot::Where::key ? inputs.k
                                                           : inputs.v;
  return tensor.at(spot.b, spot.head, spot.row, spot.d);
}

/// Does column `d` of O, or LSE for d = output_dim(), of a row depend on the spot? A value reaches
/// one column only.
bool depends_on(const Problem& p, const Spot& spot, std::int64_t b, std::int64_t h, std::int64_t n,
                std::int64_t d) {
  if (b != spot.b) return false;
  if (spot.where == Spot::Where::query) {
    return h == spot.head && n == spot.row && visible_key_count(p, b, n) > 0;
  }
  const bool sees_key = p.kv_head_of(h) == spot.head && p.sees(b, n, spot.row);
  return sees_key && (spot.where == Spot::Where::key || d == spot.d);
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

const PropertyRegistration registration{
    {.name = "nan_stays_in_its_rows",
     .statement = "a NaN in Q, K or V makes NaN of the rows that see it (of its column, in V) and "
                  "changes no other bit",
     .cost = Property::Cost::more_launches,
     .applies =
         [](Run& run) {
           const Problem& p = run.problem();
           return run.kernel().ignores_hidden_nan && p.key_len > 0 && p.query_len > 0;
         },
     .check =
         [](Run& run) {
           const Problem& p = run.problem();
           const Spot spot = draw_spot(run);
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
           if (reached.status == Check::Status::failed) return reached;
           return check_agree(launch.outputs, run.base().outputs,
                              agreement_of(run, {.neighbours = true}),
                              "a NaN input reached an element that does not depend on it",
                              [&](auto... at) { return is_bounded(at...) && !is_hit(at...); });
         }}};

}  // namespace
}  // namespace attest
