#include "verify/judge/sampled_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/reference_f64.hpp"

namespace attest {
namespace {

constexpr std::uint64_t draw_stream = 0x6c61726765;  // "large"

/// A problem of one row: it sees all of its keys, those that the row sees in the whole problem.
struct RowProblem {
  Problem problem;
  Inputs inputs;
};
RowProblem row_problem(const Problem& p, const Inputs& inputs, const Shape& row) {
  const std::vector<std::int64_t> keys = visible_keys_of(p, row[0], row[2]);
  RowProblem one{.problem = p, .inputs = {}};
  one.problem.batch = one.problem.query_heads = one.problem.kv_heads = one.problem.query_len = 1;
  one.problem.key_len = static_cast<std::int64_t>(keys.size());
  one.problem.mask = Mask::none;
  one.problem.window = {};
  take_away_seeds(one.problem);
  if (p.bias != Bias::none) one.problem.bias = Bias::full;
  for (std::size_t i = 0; i < p.operation->inputs().size(); ++i) {
    one.inputs[InputIndex{i}] = Tensor<float>(p.operation->inputs()[i].shape(one.problem));
  }
  std::ranges::copy(inputs[forward::q].row(row[0], row[1], row[2]),
                    one.inputs[forward::q].values().begin());
  const std::int64_t head = p.kv_head_of(row[1]);
  for (std::int64_t j = 0; j < one.problem.key_len; ++j) {
    const std::int64_t key = keys[static_cast<std::size_t>(j)];
    std::ranges::copy(inputs[forward::k].row(row[0], head, key),
                      one.inputs[forward::k].row(0, 0, j).begin());
    std::ranges::copy(inputs[forward::v].row(row[0], head, key),
                      one.inputs[forward::v].row(0, 0, j).begin());
    if (p.bias == Bias::none) continue;
    one.inputs[forward::bias].at(0, 0, 0, j) =
        forward::bias_of(p, inputs, row[0], row[1], row[2], key);
  }
  for (const InputIndex like_o : {forward::gate, forward::residual}) {
    if (!has_tensor(p, like_o)) continue;
    std::ranges::copy(inputs[like_o].row(row[0], row[1], row[2]),
                      one.inputs[like_o].values().begin());
  }
  if (p.sinks != Sinks::none) {
    one.inputs[forward::sinks].at(0, 0, 0, 0) = forward::sink_of(p, inputs, row[1]);
  }
  return one;
}

/// The answer to a row, as that of a problem of one row.
Answer row_of(const Answer& answer, const Shape& row) {
  Answer one;
  for (std::size_t k = 0; k < answer.size(); ++k) {
    const OutputIndex output{k};
    const auto cut = [&](const Tensor<double>& from) {
      Tensor<double> to({1, 1, 1, from.shape()[3]});
      std::ranges::copy(from.row(row[0], row[1], row[2]), to.values().begin());
      return to;
    };
    one[output] = {cut(answer[output].value), cut(answer[output].bound),
                   cut(answer[output].own_error)};
  }
  return one;
}

/// The worst of `more`, whose elements lie at `row` of the whole problem.
void merge(Comparison& worst, Comparison more, const Shape& row) {
  for (std::size_t axis = 0; axis < 3; ++axis) more.worst.index[axis] = row[axis];
  if (!(more.worst.ratio <= worst.worst.ratio)) worst.worst = more.worst;
  worst.elements += more.elements;
  worst.vacuous += more.vacuous;
  worst.outside += more.outside;
}

}  // namespace

std::vector<Shape> sampled_rows(const Problem& p, std::uint64_t seed, std::int64_t count) {
  std::vector<Shape> rows;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto draw = [&](std::uint64_t axis, std::int64_t below) {
      return random_below(seed, draw_stream + axis, static_cast<std::uint64_t>(i), below);
    };
    const std::int64_t query = i == 0 ? 0 : i == 1 ? p.query_len - 1 : draw(3, p.query_len);
    rows.push_back({draw(1, p.batch), draw(2, p.query_heads), query, 0});
  }
  return rows;
}

IndexedList<Comparison, OutputIndex> compare_each(const Outputs& got, const Answer& answer) {
  IndexedList<Comparison, OutputIndex> compared;
  for (std::size_t i = 0; i < answer.size(); ++i) {
    const OutputIndex output{i};
    Comparison& here = compared[output];
    if (got[output].size() > 0) {
      here = compare(got[output], answer[output].value, answer[output].bound);
    }
  }
  return compared;
}

Compared compare_rows(const Problem& p, const Inputs& inputs, const PrecisionPlan& precision,
                      const Outputs& outputs, const std::vector<Shape>& rows) {
  Compared result{.outputs = {}, .rows = std::ssize(rows)};
  // A row alone has other distances, and other weights fall.
  std::optional<Answer> of_all;
  if (p.slopes != Slopes::none || p.dropout != 0) of_all = exact_answer(p, inputs, precision);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Shape& at = rows[i];
    const RowProblem one = of_all ? RowProblem{} : row_problem(p, inputs, at);
    const Answer answer =
        of_all ? row_of(*of_all, at) : exact_answer(one.problem, one.inputs, precision);
    for (std::size_t k = 0; k < answer.size(); ++k) {
      const OutputIndex output{k};
      if (outputs[output].size() == 0) continue;
      Tensor<float> got(answer[output].value.shape());
      std::ranges::copy(outputs[output].row(at[0], at[1], at[2]), got.values().begin());
      merge(result.outputs[output], compare(got, answer[output].value, answer[output].bound), at);
    }
    if (i == 1 && !of_all && !certify_rows(one.problem, one.inputs, answer, 0, 1).holds()) {
      throw std::logic_error(fmt::format(
          "the f64 reference differs from the oracle by more than its own error estimate, in {}",
          to_string(p)));
    }
  }
  if (of_all && !certify_rows(p, inputs, *of_all, 0, 1).holds()) {
    throw std::logic_error(fmt::format(
        "the f64 reference differs from the oracle by more than its own error estimate, in {}",
        to_string(p)));
  }
  return result;
}

}  // namespace attest
