#include "cpu_reference/forward/reference_f64.hpp"

#include <fmt/format.h>

#include <Eigen/Core>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/on_threads.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/error_bound.hpp"
#include "cpu_reference/forward/reference_f64_keys.hpp"
#include "cpu_reference/forward/reference_f64_modified.hpp"
#include "cpu_reference/forward/reference_f64_rows.hpp"
#include "cpu_reference/forward/row_terms.hpp"

namespace attest {
namespace {

using namespace reference_f64;
using Matrix = KeyValues::Matrix;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::span<double> span_of_row(Matrix& matrix, std::int64_t row, KeyRange columns) {
  return {matrix.data() + row * matrix.cols() + columns.begin,
          static_cast<std::size_t>(columns.size())};
}

/// Work of one thread: one block of query rows of one head at a time. Tensors: Inputs or
/// RealInputs.
template <class Tensors>
class BlockSolver {
 public:
  BlockSolver(const Problem& problem, const Tensors& inputs, const PrecisionPlan& precision,
              const Magnitudes& magnitudes, Answer& answer)
      : problem_(problem),
        inputs_(inputs),
        precision_(precision),
        magnitudes_(magnitudes),
        answer_(answer) {}

  void solve(const KeyValues& kv, std::int64_t b, std::int64_t h, std::int64_t first,
             std::int64_t count) {
    // Neither end of the visible range falls from row to row.
    const std::int64_t rows = std::clamp<std::int64_t>(problem_.query_len_of(b) - first, 0, count);
    for (std::int64_t i = rows; i < count; ++i) fill_empty_row(b, h, first + i);
    if (rows == 0) return;
    const auto range_of = [&](std::int64_t i) {
      return kv.kept.places_of(problem_.visible_range(b, first + i));
    };
    const KeyRange keys{range_of(0).begin, range_of(rows - 1).end};
    const auto within = [&](KeyRange range) {
      return KeyRange{range.begin - keys.begin, range.end - keys.begin};
    };
    std::vector<bool> is_bad(static_cast<std::size_t>(rows), false);
    const Matrix q = finite_copy(
        inputs_[forward::q], b, h, rows, [&](std::int64_t i) { return first + i; },
        [&](std::int64_t i, std::int64_t) { is_bad[static_cast<std::size_t>(i)] = true; });
    scores_.noalias() = q * kv.k.middleRows(keys.begin, keys.size()).transpose();
    deviations_.noalias() = q.cwiseAbs() * kv.abs_k.middleRows(keys.begin, keys.size()).transpose();
    scratch_.resize(4, keys.size());

    std::vector<RowErrors> errors(static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < rows; ++i) {
      const KeyRange visible = within(range_of(i));
      if (visible.size() > 0) errors[static_cast<std::size_t>(i)] = weigh(i, visible);
      // Keys that the row does not see have no weight in the products of the whole block.
      scores_.row(i).head(visible.begin).setZero();
      scores_.row(i).tail(keys.size() - visible.end).setZero();
    }
    o_.noalias() = scores_ * kv.v.middleRows(keys.begin, keys.size());
    absolute_o_.noalias() = scores_ * kv.abs_v.middleRows(keys.begin, keys.size());

    VisibleValues values(kv);
    const std::int64_t columns = problem_.output_dim();
    std::vector<double> sums(static_cast<std::size_t>(columns));
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t query = first + i;
      const KeyRange visible = range_of(i);
      values.move_to(visible);
      if (visible.size() == 0) {
        fill_empty_row(b, h, query);
      } else if (is_bad[static_cast<std::size_t>(i)] || has_any(kv.bad_keys, visible)) {
        fill_row(answer_, b, h, query, {.o = nan, .lse = nan, .error = nan});
      } else {
        sum_deviations(span_of_row(deviations_, i, within(visible)),
                       kv.v.data() + visible.begin * columns, span_of_row(o_, i, {0, columns}),
                       sums);
        finish(kv, values, errors[static_cast<std::size_t>(i)], sums, b, h, query, i, visible);
      }
    }
  }

 private:
  struct Constants {
    BoundConstants kernel, own;
  };
  const Constants& constants(std::int64_t visible) {
    if (!cached_ || cached_keys_ != visible) {
      cached_ = Constants{bound_constants(precision_, problem_, visible, magnitudes_),
                          reference_constants(problem_, visible, magnitudes_)};
      cached_keys_ = visible;
    }
    return *cached_;
  }

  RowErrors weigh(std::int64_t i, KeyRange visible) {
    const Constants& c = constants(visible.size());
    const KeyRange all{0, visible.size()};
    return weigh_row(c.kernel, c.own, problem_, precision_.scale_folded_into_q,
                     {.scores = span_of_row(scores_, i, visible),
                      .absolute = span_of_row(deviations_, i, visible),
                      .weights = span_of_row(scratch_, 0, all),
                      .delta = span_of_row(scratch_, 1, all),
                      .log_error = span_of_row(scratch_, 2, all),
                      .phi = span_of_row(scratch_, 3, all)});
  }

  void fill_empty_row(std::int64_t b, std::int64_t h, std::int64_t query) {
    fill_row(answer_, b, h, query, {.o = 0, .lse = -infinity, .error = 0});
  }

  void finish(const KeyValues& kv, const VisibleValues& values, const RowErrors& row,
              const std::vector<double>& sums, std::int64_t b, std::int64_t h, std::int64_t query,
              std::int64_t i, KeyRange visible) {
    const Constants& c = constants(visible.size());
    for (std::int64_t column = 0; column < problem_.output_dim(); ++column) {
      const double o = o_(i, column);
      const double hull = values.largest_distance(column, o);
      const ElementErrors errors =
          element_errors(c.kernel, c.own, row, sums[static_cast<std::size_t>(column)], hull,
                         {.o = o,
                          .w = absolute_o_(i, column),
                          .e1 = 0,
                          .v_abs_sum = values.abs_sum(column),
                          .v_abs_max = values.abs_max(column)});
      const bool is_bad = has_any(kv.bad_values[static_cast<std::size_t>(column)], visible);
      answer_[forward::o].value.at(b, h, query, column) = is_bad ? nan : o;
      answer_[forward::o].bound.at(b, h, query, column) = is_bad ? nan : errors.bound;
      answer_[forward::o].own_error.at(b, h, query, column) = is_bad ? nan : errors.own;
    }
    set_lse(answer_, b, h, query, c.kernel, c.own, row);
  }

  const Problem& problem_;
  const Tensors& inputs_;
  const PrecisionPlan& precision_;
  const Magnitudes& magnitudes_;
  Answer& answer_;
  Matrix scores_, deviations_, o_, absolute_o_, scratch_;
  std::optional<Constants> cached_;
  std::int64_t cached_keys_ = 0;
};

void check_shape(const char* name, const Shape& got, const Shape& expected) {
  if (got == expected) return;
  throw InvalidInput(fmt::format(
      "exact_answer: {} has shape [{}, {}, {}, {}], but the problem needs [{}, {}, {}, {}]", name,
      got[0], got[1], got[2], got[3], expected[0], expected[1], expected[2], expected[3]));
}

/// Rows that share the matrix products: enough for them to run from cache, few enough for the
/// scores to stay there.
std::int64_t rows_per_block(std::int64_t key_len) {
  constexpr std::int64_t scores_in_cache = 1 << 15;
  return std::clamp<std::int64_t>(scores_in_cache / std::max<std::int64_t>(key_len, 1), 16, 64);
}

template <class Tensors>
Answer answer_of(const Problem& problem, const Tensors& inputs, const PrecisionPlan& precision,
                 const Magnitudes& magnitudes, int threads) {
  check_shape("q", inputs[forward::q].shape(), query_shape(problem));
  check_shape("k", inputs[forward::k].shape(), key_shape(problem));
  check_shape("v", inputs[forward::v].shape(), value_shape(problem));
  const Tensor<double> o(output_shape(problem)), lse(lse_shape(problem));
  Answer answer{OutputAnswer{o, o, o}, OutputAnswer{lse, lse, lse}};

  if constexpr (std::is_same_v<Tensors, Inputs>) {
    if (has_modifications(problem) || problem.list_seed != 0) {
      solve_modified(problem, inputs, precision, magnitudes, threads, answer);
      return answer;
    }
  }
  std::vector<KeyValues> heads;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.kv_heads; ++h) {
      heads.push_back(load_keys_and_values(problem, inputs, b, h));
    }
  }
  const std::int64_t block_rows = rows_per_block(problem.key_len);
  const std::int64_t blocks = (problem.query_len + block_rows - 1) / block_rows;
  const std::int64_t tasks = problem.batch * problem.query_heads * blocks;
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    BlockSolver solver(problem, inputs, precision, magnitudes, answer);
    for (std::int64_t task = next++; task < tasks; task = next++) {
      const std::int64_t head = task / blocks;
      const std::int64_t b = head / problem.query_heads;
      const std::int64_t h = head % problem.query_heads;
      const std::int64_t first = task % blocks * block_rows;
      const auto& kv =
          heads[static_cast<std::size_t>(b * problem.kv_heads + problem.kv_head_of(h))];
      solver.solve(kv, b, h, first, std::min(block_rows, problem.query_len - first));
    }
  };
  const std::int64_t count = std::min<std::int64_t>(threads, tasks);
  if (count > 1) {
    on_threads(static_cast<std::size_t>(count), work);
  } else {
    work();
  }
  return answer;
}

}  // namespace

Answer exact_answer(const Problem& problem, const Inputs& inputs, const PrecisionPlan& precision,
                    int threads) {
  return answer_of(problem, inputs, precision, magnitudes_of(inputs), threads);
}

Answer exact_answer(const Problem& problem, const RealInputs& inputs,
                    const PrecisionPlan& precision, const Magnitudes& scales, int threads) {
  Magnitudes magnitudes = magnitudes_of(inputs);
  magnitudes.scores = scales.scores;
  magnitudes.values = scales.values;
  return answer_of(problem, inputs, precision, magnitudes, threads);
}

}  // namespace attest
