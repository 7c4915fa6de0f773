#include "cpu_reference/forward/reference_f64_modified.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/base/on_threads.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/added_to_score.hpp"
#include "cpu_reference/forward/epilogue.hpp"
#include "cpu_reference/forward/error_bound.hpp"
#include "cpu_reference/forward/reference_f64_rows.hpp"
#include "cpu_reference/forward/row_terms.hpp"

namespace attest::reference_f64 {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The keys that one row sees, and its sink behind them as a key of value 0.
struct ModifiedRow {
  std::vector<std::int64_t> keys;
  bool has_sink = false;
  bool is_finite = true;  ///< false: O and LSE are NaN
  std::vector<double> scores, absolute, added, added_magnitude;
  std::vector<double> values;     ///< [terms, columns], d_j v_j; 0 for what is not finite
  std::vector<bool> bad_columns;  ///< of which a visible value is not finite
  [[nodiscard]] std::size_t terms() const { return scores.size(); }
};

/// Adds a key to the row's dot products and values.
void add_key(const Problem& problem, const Inputs& inputs, std::int64_t b, std::int64_t h,
             std::int64_t query, std::int64_t key, ModifiedRow& row) {
  const auto q = inputs[forward::q].row(b, h, query);
  const auto k = inputs[forward::k].row(b, problem.kv_head_of(h), key);
  double dot = 0, absolute = 0;
  for (std::size_t c = 0; c < q.size(); ++c) {
    const double product = static_cast<double>(q[c]) * static_cast<double>(k[c]);
    row.is_finite = row.is_finite && std::isfinite(q[c]) && std::isfinite(k[c]);
    dot += product;
    absolute += std::abs(product);
  }
  const auto added = added_to_score<double>(problem, inputs, b, h, query, key);
  row.is_finite = row.is_finite && added.is_finite;
  row.scores.push_back(dot);
  row.absolute.push_back(absolute);
  row.added.push_back(added.sum);
  row.added_magnitude.push_back(added.magnitude);
  const auto v = inputs[forward::v].row(b, problem.kv_head_of(h), key);
  const auto factor = kept_factor<double>(problem, b, h, query, key);
  for (std::size_t c = 0; c < v.size(); ++c) {
    const bool is_bad = !std::isfinite(v[c]);
    if (is_bad) row.bad_columns[c] = true;
    row.values.push_back(is_bad ? 0 : factor * static_cast<double>(v[c]));
  }
}

ModifiedRow row_of(const Problem& problem, const Inputs& inputs, std::int64_t b, std::int64_t h,
                   std::int64_t query) {
  ModifiedRow row;
  const auto columns = static_cast<std::size_t>(problem.output_dim());
  row.bad_columns.assign(columns, false);
  row.keys = forward::keys_of_row(problem, inputs, b, h, query);
  for (const std::int64_t key : row.keys) add_key(problem, inputs, b, h, query, key, row);
  const float sink = forward::sink_of(problem, inputs, h);
  row.has_sink = sink != -std::numeric_limits<float>::infinity();
  if (!row.has_sink) return row;
  row.is_finite = row.is_finite && std::isfinite(sink);
  row.scores.push_back(0);
  row.absolute.push_back(0);
  row.added.push_back(static_cast<double>(sink));
  row.added_magnitude.push_back(std::abs(static_cast<double>(sink)));
  row.values.insert(row.values.end(), columns, 0.0);
  return row;
}

/// Solves rows of one entry and head after the other.
class ModifiedSolver {
 public:
  ModifiedSolver(const Problem& problem, const Inputs& inputs, const PrecisionPlan& precision,
                 const Magnitudes& magnitudes, Answer& answer)
      : problem_(problem),
        inputs_(inputs),
        precision_(precision),
        magnitudes_(magnitudes),
        answer_(answer) {}

  void solve(std::int64_t b, std::int64_t h, std::int64_t query) {
    constexpr OneValueRow empty{.o = 0, .lse = -infinity, .error = 0};
    if (query >= problem_.query_len_of(b)) return fill_row(answer_, b, h, query, empty);
    ModifiedRow row = row_of(problem_, inputs_, b, h, query);
    if (!row.is_finite) {
      return fill_row(answer_, b, h, query, {.o = nan, .lse = nan, .error = nan});
    }
    if (row.terms() > 0) return finish(row, b, h, query);
    fill_row(answer_, b, h, query, empty);
    for (std::int64_t c = 0; has_epilogue(problem_) && c < problem_.output_dim(); ++c) {
      set_output(b, h, query, c, 0, {0, 0});
    }
  }

 private:
  /// Writes an element of O, which is `a` before its epilogue. NaN has bounds of NaN.
  void set_output(std::int64_t b, std::int64_t h, std::int64_t query, std::int64_t column, double a,
                  const ElementErrors& errors) {
    const double o = epilogue_of<double>(problem_, inputs_, b, h, query, column).of(a);
    const bool is_bad = std::isnan(o);
    answer_[forward::o].value.at(b, h, query, column) = o;
    answer_[forward::o].bound.at(b, h, query, column) = is_bad ? nan : errors.bound;
    answer_[forward::o].own_error.at(b, h, query, column) = is_bad ? nan : errors.own;
  }

  void finish(ModifiedRow& row, std::int64_t b, std::int64_t h, std::int64_t query) {
    const std::size_t terms = row.terms();
    const auto columns = static_cast<std::size_t>(problem_.output_dim());
    const auto keys = static_cast<std::int64_t>(row.keys.size());
    const BoundConstants kernel = bound_constants(precision_, problem_, keys, magnitudes_);
    const BoundConstants own = reference_constants(problem_, keys, magnitudes_);
    std::vector<double> scratch(5 * terms);
    const auto part = [&](std::size_t i) { return std::span(scratch).subspan(i * terms, terms); };
    const RowErrors errors = weigh_row(kernel, own, problem_, precision_.scale_folded_into_q,
                                       {.scores = row.scores,
                                        .absolute = row.absolute,
                                        .weights = part(0),
                                        .delta = part(1),
                                        .log_error = part(2),
                                        .phi = part(3),
                                        .added = row.added,
                                        .added_magnitude = row.added_magnitude,
                                        .before = part(4)});
    // row.scores are the weights now, and row.absolute what they may err by.
    std::vector<double> o(columns), w(columns), abs_sum(columns), lowest(columns, infinity),
        highest(columns, -infinity), deviations(columns);
    for (std::size_t j = 0; j < terms; ++j) {
      for (std::size_t c = 0; c < columns; ++c) {
        const double v = row.values[j * columns + c];
        o[c] += row.scores[j] * v;
        w[c] += row.scores[j] * std::abs(v);
        abs_sum[c] += std::abs(v);
        lowest[c] = std::min(lowest[c], v);
        highest[c] = std::max(highest[c], v);
      }
    }
    sum_deviations(row.absolute, row.values.data(), o, deviations);
    for (std::size_t c = 0; c < columns; ++c) {
      const auto column = static_cast<std::int64_t>(c);
      const double hull = std::max(highest[c] - o[c], o[c] - lowest[c]);
      ElementErrors element =
          element_errors(kernel, own, errors, deviations[c], hull,
                         {.o = o[c],
                          .w = w[c],
                          .e1 = 0,
                          .v_abs_sum = abs_sum[c],
                          .v_abs_max = std::max(std::abs(lowest[c]), std::abs(highest[c]))},
                         epilogue_of<double>(problem_, inputs_, b, h, query, column));
      // Nothing was added: 0, whatever the sink.
      if (row.keys.empty()) element = {0, 0};
      set_output(b, h, query, column, row.bad_columns[c] ? nan : o[c], element);
    }
    set_lse(answer_, b, h, query, kernel, own, errors);
  }

  const Problem& problem_;
  const Inputs& inputs_;
  const PrecisionPlan& precision_;
  const Magnitudes& magnitudes_;
  Answer& answer_;
};

}  // namespace

void solve_modified(const Problem& problem, const Inputs& inputs, const PrecisionPlan& precision,
                    const Magnitudes& magnitudes, int threads, Answer& answer) {
  const std::int64_t tasks = problem.rows();
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    ModifiedSolver solver(problem, inputs, precision, magnitudes, answer);
    for (std::int64_t task = next++; task < tasks; task = next++) {
      const std::int64_t query = task % problem.query_len;
      const std::int64_t h = task / problem.query_len % problem.query_heads;
      solver.solve(task / problem.query_len / problem.query_heads, h, query);
    }
  };
  const std::int64_t count = std::min<std::int64_t>(threads, tasks);
  if (count > 1) {
    on_threads(static_cast<std::size_t>(count), work);
  } else {
    work();
  }
}

}  // namespace attest::reference_f64
