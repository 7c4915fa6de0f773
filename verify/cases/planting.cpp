#include "verify/cases/planting.hpp"

#include <cstddef>
#include <optional>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

/// The key of the smallest score among those that the row sees; nothing where it sees none. A
/// softcap does not change their order.
std::optional<std::int64_t> least_key(const Problem& p, const Inputs& inputs, std::int64_t b,
                                      std::int64_t h, std::int64_t n) {
  const auto q = inputs[forward::q].row(b, h, n);
  std::optional<std::int64_t> least;
  double least_score = 0;
  for (const std::int64_t key : visible_keys_of(p, b, n)) {
    const auto k = inputs[forward::k].row(b, p.kv_head_of(h), key);
    double dot = 0;
    for (std::size_t c = 0; c < q.size(); ++c) dot += static_cast<double>(q[c]) * k[c];
    const double score = p.scale * dot;
    if (least && !(score < least_score)) continue;
    least = key;
    least_score = score;
  }
  return least;
}

}  // namespace

Spot draw_spot(Run& run, std::uint64_t stream, Spot::Where where) {
  const Problem& p = run.problem();
  const auto draw = [&](std::uint64_t index, std::int64_t bound) {
    return random_below(run.the_case().inputs.seed, stream, index, bound);
  };
  Spot spot{.where = where, .b = draw(1, p.batch)};
  const bool in_query = where == Spot::Where::query;
  spot.head = draw(2, in_query ? p.query_heads : p.kv_heads);
  // An entry without rows of its own takes any: nothing may then depend on it.
  const std::int64_t rows = in_query ? p.query_len_of(spot.b) : p.key_len_of(spot.b);
  spot.row = draw(3, rows > 0 ? rows : in_query ? p.query_len : p.key_len);
  spot.d = draw(4, where == Spot::Where::value ? p.output_dim() : p.head_dim);
  if (in_query || draw(5, 2) == 0 || p.query_len_of(spot.b) == 0) return spot;
  const std::int64_t group = p.query_heads / p.kv_heads;
  const auto key = least_key(p, run.inputs(), spot.b, spot.head * group + draw(6, group),
                             draw(7, p.query_len_of(spot.b)));
  spot.row = key.value_or(spot.row);
  return spot;
}

float& element(Inputs& inputs, const Spot& spot) {
  Tensor<float>& tensor = spot.where == Spot::Where::query ? inputs[forward::q]
                          : spot.where == Spot::Where::key ? inputs[forward::k]
                                                           : inputs[forward::v];
  return tensor.at(spot.b, spot.head, spot.row, spot.d);
}

bool sees(const Problem& p, const Spot& spot, std::int64_t b, std::int64_t h, std::int64_t n) {
  if (b != spot.b) return false;
  if (spot.where == Spot::Where::query) {
    return h == spot.head && n == spot.row && visible_key_count(p, b, n) > 0;
  }
  return p.kv_head_of(h) == spot.head && p.sees(b, n, spot.row);
}

}  // namespace attest
