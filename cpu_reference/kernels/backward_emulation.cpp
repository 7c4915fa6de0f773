#include "cpu_reference/kernels/backward_emulation.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

#include "core/attention/dq_units.hpp"
#include "cpu_reference/kernels/backward_rows.hpp"

namespace attest {
namespace {

float stored(ElementType type, float x) {
  return type == ElementType::fp32 ? x : static_cast<float>(round_to(type, x));
}

/// True if each part of dQ is multiplied by the scale and stored, and not their sum.
bool scales_dq_parts(const BackwardRoundings& how) {
  return how.dq_part_format != ElementType::fp32;
}

void require_replayed(const BackwardRoundings& how) {
  for (const Accumulation& sum : {how.score, how.product, how.sums}) {
    if (sum.kind != Accumulation::Kind::fp32_fma)
      throw std::logic_error("emulate_backward: sums are chains of fp32 FMAs");
  }
  if (how.lse != LseForm::natural || how.exp.name != library_expf().name || !how.scale_after_dot)
    throw std::logic_error("emulate_backward: P is expf(scale q.k - LSE)");
  if (scales_dq_parts(how) && (how.scales_dscore || how.dq_sum_format != ElementType::fp32))
    throw std::logic_error("emulate_backward: parts of dQ that are stored are added in fp32");
}

/// Values that a query row brings to its pairs.
struct SavedFloats {
  float lse, delta;
};

/// P and dS of a pair as products read them; dS times the scale where it is stored so.
PairWeights rounded_weights(const Problem& problem, const BackwardRoundings& how, float dot,
                            float product, SavedFloats row) {
  float s = problem.scale * dot, slope = 1;
  if (problem.softcap != 0) {
    const float t = std::tanh(s / problem.softcap);
    s = problem.softcap * t;
    slope = 1 - t * t;
  }
  const float p = std::exp(s - row.lse);
  const float stored_p = stored(how.weight_format, p);
  const float of_ds = how.dscore_of_rounded_weights ? stored_p : p;
  const float ds = of_ds * (product - row.delta) * slope;
  const float scale = how.scales_dscore ? problem.scale : 1;
  return {stored_p, stored(how.dscore_format, scale * ds)};
}

/// One KV head of an entry: its keys, and their gradients.
struct Keys {
  HeadTensor k, v, k_columns, v_columns, dk, dv;

  Keys(const BackwardRows& rows, std::int64_t kv_head)
      : k(rows.k(kv_head)),
        v(rows.v(kv_head)),
        k_columns(k.transposed()),
        v_columns(v.transposed()),
        dk(rows.keys(), k.columns),
        dv(rows.keys(), v.columns) {}
};

/// A row of dQ whose parts are added as integers.
class RowInUnits {
 public:
  RowInUnits(double size, std::int64_t columns)
      : unit_(std::isfinite(size) ? dq_unit(size) : 0), sums_(static_cast<std::size_t>(columns)) {
    if (unit_ == 0) used_ = dq_range;
  }
  void add(std::span<const float> part) {
    double largest = 0;
    for (std::size_t c = 0; c < part.size(); ++c) {
      const double x = part[c] / unit_;
      if (!(std::abs(x) < 0x1p31)) {
        used_ = dq_range;
        return;
      }
      largest = std::max(largest, std::abs(x));
      sums_[c] += static_cast<std::int64_t>(std::nearbyint(x));
    }
    used_ += static_cast<std::uint32_t>(std::ceil(std::ldexp(largest, -dq_range_step_bits)));
  }
  void write(std::span<float> row) const {
    for (std::size_t c = 0; c < row.size(); ++c) {
      row[c] = used_ < dq_range ? static_cast<float>(static_cast<float>(sums_[c]) * unit_)
                                : std::numeric_limits<float>::quiet_NaN();
    }
  }

 private:
  double unit_;
  std::vector<std::int64_t> sums_;
  std::uint64_t used_ = 0;
};

/// The largest numbers of the keys and values that a row of dQ sees, from which its size follows
/// (core/attention/dq_units.hpp).
struct LargestSeen {
  double key = 0, value = 0;

  void see(std::span<const float> k, std::span<const float> v) {
    for (const float x : k) key = std::max<double>(key, std::abs(x));
    for (const float x : v) value = std::max<double>(value, std::abs(x));
  }
  [[nodiscard]] double size(std::span<const float> gradient, double delta) const {
    double sum = 0;
    for (const float x : gradient) sum += std::abs(x);
    return (sum * value + std::abs(delta)) * key;
  }
};

/// Adds what one query head gives to dk and dv, before the scale; returns its dQ.
HeadTensor add_head(const BackwardArguments& a, const BackwardRoundings& how,
                    const BackwardRows& rows, std::int64_t h, const Keys& keys, HeadTensor& dk,
                    HeadTensor& dv) {
  const HeadTensor q = rows.q(h), o = rows.o(h), gradient = rows.gradient(h);
  HeadTensor dq(rows.queries(), q.columns);
  const float of_parts = scales_dq_parts(how) ? a.problem.scale : 1;
  const float of_sums = how.scales_dscore || scales_dq_parts(how) ? 1 : a.problem.scale;
  for (std::int64_t n = 0; n < rows.queries(); ++n) {
    const float delta = dot(gradient.row(n), o.row(n)) - rows.lse_gradient(h, n);
    const SavedFloats row{stored(how.lse_format, rows.lse(h, n)), stored(how.delta_format, delta)};
    const KeyRange range = rows.keys_of(n);
    std::optional<RowInUnits> in_units;
    if (how.sums_dq_in_units) {
      LargestSeen seen;
      for (std::int64_t j = range.begin; j < range.end; ++j) {
        if (!rows.is_hidden(n, j)) seen.see(keys.k.row(j), keys.v.row(j));
      }
      in_units.emplace(seen.size(gradient.row(n), row.delta), q.columns);
    }
    for (std::int64_t key = 0; key < rows.keys(); key += a.plan.key_tile) {
      const KeyRange tile{key, std::min(key + a.plan.key_tile, rows.keys())};
      if (tile.end <= range.begin || range.end <= tile.begin) continue;
      const std::vector<float> scores = dots(q.row(n), keys.k_columns, tile);
      const std::vector<float> products = dots(gradient.row(n), keys.v_columns, tile);
      HeadTensor part(1, q.columns);
      for (std::int64_t j = tile.begin; j < tile.end; ++j) {
        if (!range.holds(j) || rows.is_hidden(n, j)) continue;
        const auto i = static_cast<std::size_t>(j - tile.begin);
        const PairWeights pair = rounded_weights(a.problem, how, scores[i], products[i], row);
        add_row(pair.p, gradient.row(n), dv.row(j));
        add_row(pair.ds, q.row(n), dk.row(j));
        add_row(pair.ds, keys.k.row(j), part.row(0));
      }
      if (in_units) in_units->add(part.row(0));
      for (std::size_t c = 0; c < part.values.size(); ++c) {
        const float of_part = stored(how.dq_part_format, of_parts * part.values[c]);
        dq.row(n)[c] = stored(how.dq_sum_format, dq.row(n)[c] + of_part);
      }
    }
    if (in_units) in_units->write(dq.row(n));
  }
  for (float& x : dq.values) x *= of_sums;
  return dq;
}

}  // namespace

void emulate_backward(const BackwardArguments& a, const BackwardRoundings& how) {
  require_replayed(how);
  const std::int64_t group = a.problem.query_heads / a.problem.kv_heads;
  const std::int64_t heads_in_chain = how.kv_parts > 1 ? 1 : group;
  const float scale = how.scales_dscore ? 1 : a.problem.scale;
  for (std::int64_t b = 0; b < a.problem.batch; ++b) {
    const BackwardRows rows(a, b);
    for (std::int64_t kv_head = 0; kv_head < a.problem.kv_heads; ++kv_head) {
      Keys keys(rows, kv_head);
      for (std::int64_t first = 0; first < group; first += heads_in_chain) {
        HeadTensor dk(rows.keys(), keys.k.columns), dv(rows.keys(), keys.v.columns);
        for (std::int64_t i = first; i < first + heads_in_chain; ++i) {
          const std::int64_t h = kv_head * group + i;
          rows.write_dq(h, add_head(a, how, rows, h, keys, dk, dv));
        }
        for (std::size_t i = 0; i < dk.values.size(); ++i)
          keys.dk.values[i] += stored(how.kv_part_format, scale * dk.values[i]);
        for (std::size_t i = 0; i < dv.values.size(); ++i)
          keys.dv.values[i] += stored(how.kv_part_format, dv.values[i]);
      }
      rows.write_dk(kv_head, keys.dk);
      rows.write_dv(kv_head, keys.dv);
    }
  }
}

}  // namespace attest
