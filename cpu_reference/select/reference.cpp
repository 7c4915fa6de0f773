// The answer of select_operation: the keys of the largest exact scores, and how far the i-th key
// and its score may be from it where computed scores leave several sets.
#include "cpu_reference/reference.hpp"

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>

#include "core/inputs/random.hpp"
#include "core/operations/select.hpp"
#include "cpu_reference/select/selection.hpp"

namespace attest {
namespace {

using Quad = boost::multiprecision::number<boost::multiprecision::cpp_bin_float_quad::backend_type,
                                           boost::multiprecision::et_off>;

constexpr std::uint64_t certificate_stream = 0x73656c65;  // "sele"
constexpr double infinity = std::numeric_limits<double>::infinity();

OutputAnswer filled_answer(const Shape& shape, double value) {
  return {Tensor<double>(shape, value), Tensor<double>(shape), Tensor<double>(shape)};
}

void answer_row(const Problem& problem, const Inputs& inputs, const SelectRoundings& how,
                std::int64_t b, std::int64_t n, Answer& answer) {
  const std::vector<std::int64_t> keys = visible_keys_of(problem, b, n);
  const std::int64_t count = std::min<std::int64_t>(problem.top_k, std::ssize(keys));
  answer[selecting::counts].value.at(b, 0, n, 0) = static_cast<double>(count);
  if (count == 0) return;
  const std::vector<ScoreRange> ranges = score_ranges(problem, inputs, how, b, n, keys);
  const Selection selection = possible_selections(keys, ranges, count);
  double least = infinity, greatest = -infinity;  // of all scores that may be returned
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (selection.is_out[i]) continue;
    least = std::min(least, ranges[i].lowest);
    greatest = std::max(greatest, ranges[i].highest);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t key = selection.value[at];
    const std::int64_t low = selection.least[at], high = selection.greatest[at];
    answer[selecting::keys].value.at(b, 0, n, i) = static_cast<double>(key);
    answer[selecting::keys].bound.at(b, 0, n, i) =
        static_cast<double>(std::max(key - low, high - key));
    const ScoreRange& score =
        ranges[static_cast<std::size_t>(std::ranges::lower_bound(keys, key) - keys.begin())];
    OutputAnswer& scores = answer[selecting::scores];
    scores.value.at(b, 0, n, i) = score.value;
    scores.own_error.at(b, 0, n, i) = score.own_error;
    const double of_other = std::max(greatest - score.rank(), score.rank() - least);
    const double bound = low == high ? score.error() : of_other;
    // NaN: infinities of one sign among different keys.
    scores.bound.at(b, 0, n, i) = std::isnan(bound) ? infinity : bound;
  }
}

Answer exact(const Problem& problem, const Inputs& inputs, const Roundings& roundings) {
  const auto& how = roundings.as<SelectRoundings>();
  const Shape lists = select_operation[selecting::keys].shape(problem);
  Answer answer{filled_answer(lists, selecting::no_key),
                filled_answer(select_operation[selecting::counts].shape(problem), 0),
                filled_answer(lists, -infinity)};
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t n = 0; n < problem.query_len_of(b); ++n) {
      answer_row(problem, inputs, how, b, n, answer);
    }
  }
  return answer;
}

/// The definition, for one key.
Quad defined_score(const Problem& problem, const Inputs& inputs, std::int64_t b, std::int64_t n,
                   std::int64_t key) {
  Quad score = 0;
  for (std::int64_t h = 0; h < problem.query_heads; ++h) {
    const auto q = inputs[selecting::q].row(b, h, n);
    const auto k = inputs[selecting::k].row(b, problem.kv_head_of(h), key);
    Quad dot = 0;
    for (std::size_t d = 0; d < q.size(); ++d) dot += Quad(q[d]) * Quad(k[d]);
    Quad scaled = Quad(problem.scale) * dot;
    if (scaled < 0) scaled = 0;
    score += Quad(inputs[selecting::weights].at(b, h, n, 0)) * scaled;
  }
  return score;
}

/// |score - defined| over its own error: 0 for equal numbers and two NaN.
double error_ratio(const ScoreRange& score, const Quad& defined) {
  if (std::isnan(score.value) || isnan(defined)) {
    return std::isnan(score.value) && isnan(defined) ? 0 : infinity;
  }
  if (Quad(score.value) == defined) return 0;
  const auto error = static_cast<double>(abs(Quad(Quad(score.value) - defined)));
  return error <= score.own_error ? error / score.own_error : infinity;
}

constexpr int keys_of_certificate = 16;

/// Keys of a row drawn anew: their scores are those of the definition, and none that is left out
/// is larger than one that is returned, by more than the own errors of both.
double worst_ratio_of_row(const Problem& problem, const Inputs& inputs, const Answer& answer,
                          std::int64_t b, std::int64_t n, std::uint64_t seed, int row) {
  const std::vector<std::int64_t> keys = visible_keys_of(problem, b, n);
  const auto count = static_cast<std::int64_t>(answer[selecting::counts].value.at(b, 0, n, 0));
  if (count != std::min<std::int64_t>(problem.top_k, std::ssize(keys))) return infinity;
  const auto chosen = answer[selecting::keys].value.row(b, 0, n);
  std::vector<std::int64_t> drawn;
  for (int i = 0; i < keys_of_certificate && !keys.empty(); ++i) {
    const auto number = static_cast<std::uint64_t>(row * keys_of_certificate + i);
    const auto place = random_below(seed, certificate_stream + 2, number, std::ssize(keys));
    drawn.push_back(keys[static_cast<std::size_t>(place)]);
  }
  double worst = 0, least_chosen = infinity, greatest_left = -infinity;
  const std::vector<ScoreRange> scores = score_ranges(problem, inputs, {}, b, n, drawn);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const Quad defined = defined_score(problem, inputs, b, n, drawn[i]);
    worst = std::max(worst, error_ratio(scores[i], defined));
    const double rank = isnan(defined) ? infinity : static_cast<double>(defined);
    const bool is_chosen =
        std::ranges::find(chosen.begin(), chosen.begin() + count, static_cast<double>(drawn[i])) !=
        chosen.begin() + count;
    double& end = is_chosen ? least_chosen : greatest_left;
    end = is_chosen ? std::min(end, rank + scores[i].own_error)
                    : std::max(end, rank - scores[i].own_error);
  }
  return greatest_left > least_chosen ? infinity : worst;
}

Certificate certify(const Problem& problem, const Inputs& inputs, const Answer& answer,
                    std::uint64_t seed, int rows) {
  Certificate certificate;
  for (int row = 0; row < rows; ++row) {
    const auto number = static_cast<std::uint64_t>(row);
    const std::int64_t b = random_below(seed, certificate_stream, number, problem.batch);
    const std::int64_t queries = problem.query_len_of(b);
    if (queries == 0) continue;
    const std::int64_t n = random_below(seed, certificate_stream + 1, number, queries);
    ++certificate.rows;
    certificate.worst_ratio = std::max(
        certificate.worst_ratio, worst_ratio_of_row(problem, inputs, answer, b, n, seed, row));
  }
  return certificate;
}

const ReferenceRegistration registration{
    {.operation = &select_operation, .exact = exact, .certify = certify}};

}  // namespace
}  // namespace attest
