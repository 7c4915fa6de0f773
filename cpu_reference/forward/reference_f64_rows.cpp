#include "cpu_reference/forward/reference_f64_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/operations/forward.hpp"
#include "cpu_reference/forward/row_terms.hpp"

// The binary runs on any x86-64: the loader picks the widest version that the machine has. They
// differ only in the order of sums of bound quantities, which evaluation_slack covers.
#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
#define ATTEST_WIDEST_VECTORS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ATTEST_WIDEST_VECTORS
#endif

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
/// Sum and denominator of candidate (a) or (b) of step 3.
struct Candidate {
  double sum = 0, denominator = 0;
  [[nodiscard]] double growth() const { return sum / denominator; }
};

/// Properties of the H_j of a row.
struct LogErrors {
  double largest = 0;               ///< max H_j
  double top_exponent = -infinity;  ///< max ln(p_j e^H_j)
  double magnitude = 0;             ///< max |s_j| + delta_j
  double top_score = -infinity;     ///< max s_j + delta_j
};

/// Fills row.delta and row.log_error. row.scores holds s_j, row.absolute A_j.
LogErrors bound_log_errors(const BoundConstants& c, const RowBuffers& row, double lse) {
  LogErrors errors;
  for (std::size_t j = 0; j < row.scores.size(); ++j) {
    if (row.added.empty()) {
      row.delta[j] = score_error(c, row.scores[j], row.absolute[j]);
    } else {
      row.delta[j] = score_error(c, row.before[j], row.absolute[j]) +
                     added_error(c, std::abs(row.before[j]) + row.added_magnitude[j]);
    }
    errors.top_score = std::max(errors.top_score, row.scores[j] + row.delta[j]);
    errors.magnitude = std::max(errors.magnitude, std::abs(row.scores[j]) + row.delta[j]);
  }
  for (std::size_t j = 0; j < row.scores.size(); ++j) {
    row.log_error[j] =
        log_weight_error(c, row.scores[j], row.delta[j], errors.top_score, errors.magnitude);
    errors.largest = std::max(errors.largest, row.log_error[j]);
    errors.top_exponent = std::max(errors.top_exponent, row.scores[j] - lse + row.log_error[j]);
  }
  return errors;
}

/// phi_j = p_j (e^H_j - 1) and the sums, where all H_j are small.
Candidate weigh_small_errors(std::span<const double> weights, std::span<const double> log_error,
                             std::span<double> phi) {
  Candidate candidate;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    phi[j] = weights[j] * small_growth(log_error[j]);
    candidate.sum += phi[j];
    candidate.denominator += weights[j] * small_decay(log_error[j]);
  }
  return candidate;
}

Candidate weigh_large_errors(const RowBuffers& row, double lse, std::span<double> phi) {
  Candidate candidate;
  for (std::size_t j = 0; j < phi.size(); ++j) {
    phi[j] = weight_change(row.scores[j] - lse, 0, row.log_error[j]);
    candidate.sum += phi[j];
    candidate.denominator += std::exp(row.scores[j] - lse - row.log_error[j]);
  }
  return candidate;
}

/// Step 3 and its denominator. Leaves p_j (e^H_j - 1) of the chosen candidate in row.phi.
struct Step3 {
  RowSummary<double> summary{};
  double denominator = 1;
};
Step3 perturb_weights(const BoundConstants& c, const RowBuffers& row, double lse) {
  const LogErrors errors = bound_log_errors(c, row, lse);
  const auto weigh = [&](std::span<double> phi) {
    return errors.largest < short_series / 2 ? weigh_small_errors(row.weights, row.log_error, phi)
                                             : weigh_large_errors(row, lse, phi);
  };
  const Candidate plain = weigh(row.phi);
  const bool can_sum = errors.top_exponent <= largest_summed_exponent;
  Step3 result;
  result.denominator = plain.denominator;
  RowSummary<double>& summary = result.summary;
  summary.growth = can_sum ? plain.growth() : infinity;
  summary.log_growth = can_sum
                           ? std::log1p(plain.sum)
                           : errors.top_exponent + std::log(static_cast<double>(row.scores.size()));
  summary.largest_magnitude = errors.magnitude;
  summary.normaliser_floor =
      normaliser_floor(c, errors.magnitude, lse - errors.top_score, plain.denominator);
  if (c.forms_weights_twice) {
    for (std::size_t j = 0; j < row.scores.size(); ++j) {
      const double twice = 2 * (row.log_error[j] - row.delta[j]);
      summary.twice_formed += weight_change(row.scores[j] - lse, row.log_error[j], twice);
    }
    summary.twice_formed /= plain.denominator;
  }

  // Candidate (b) helps only around a key that holds more than half of the weight.
  const auto top = static_cast<std::size_t>(
      std::max_element(row.weights.begin(), row.weights.end()) - row.weights.begin());
  if (can_sum && row.weights[top] > 0.5) {
    const double common = row.log_error[top];
    for (double& h : row.log_error) h += common;
    row.log_error[top] = 0;
    const Candidate centred = weigh(row.delta);
    if (centred.growth() < plain.growth()) {
      std::copy(row.delta.begin(), row.delta.end(), row.phi.begin());
      summary.growth = centred.growth();
      result.denominator = centred.denominator;
    }
  }
  return result;
}

}  // namespace

RowErrors weigh_row(const BoundConstants& kernel, const BoundConstants& own, const Problem& problem,
                    bool scale_is_folded, const RowBuffers& row) {
  const std::size_t keys = row.scores.size();
  const double scale = static_cast<double>(problem.scale);
  const double softcap = static_cast<double>(problem.softcap);
  RowErrors result;
  double largest_dot = 0, maximum = -infinity, largest_terms = 0;
  for (std::size_t j = 0; j < keys; ++j) {
    largest_dot = std::max(largest_dot, row.absolute[j]);
    row.scores[j] *= scale;
    row.absolute[j] *= std::abs(scale);
    if (softcap > 0) row.scores[j] = softcap * std::tanh(row.scores[j] / softcap);
    if (!row.added.empty()) {
      row.before[j] = row.scores[j];
      row.scores[j] += row.added[j];
      largest_terms = std::max(largest_terms, std::abs(row.before[j]) + row.added_magnitude[j]);
    }
    maximum = std::max(maximum, row.scores[j]);
  }
  const double scaled = largest_dot * std::abs(scale);
  const double largest_value =
      scale_is_folded || scale == 0 ? scaled : std::max(largest_dot, scaled);
  result.is_vacuous = !(largest_value * (1 + kernel.score_relative) < kernel.max_finite) ||
                      !(largest_terms < kernel.max_finite);

  double normaliser = 0;
  for (std::size_t j = 0; j < keys; ++j) {
    row.weights[j] = std::exp(row.scores[j] - maximum);
    normaliser += row.weights[j];
  }
  for (double& weight : row.weights) weight /= normaliser;
  result.lse = maximum + std::log(normaliser);

  const Step3 of_kernel = perturb_weights(kernel, row, result.lse);
  result.kernel = of_kernel.summary;
  if (result.kernel.growth <= largest_useful_growth) {
    result.own_share = share_of(own, kernel);
    result.denominator = of_kernel.denominator;
    // The reference's perturbed weights only shift its underflow terms, which are zero for all
    // practical input.
    result.own.growth = result.own_share * result.kernel.growth;
    // Jensen: E e^(a H) <= (E e^H)^a for a <= 1.
    result.own.log_growth = result.own_share * result.kernel.log_growth;
    result.own.normaliser_floor = 1;
  } else {
    const Step3 of_reference = perturb_weights(own, row, result.lse);
    result.own = of_reference.summary;
    result.denominator = of_reference.denominator;
  }
  std::copy(row.weights.begin(), row.weights.end(), row.scores.begin());
  std::copy(row.phi.begin(), row.phi.end(), row.absolute.begin());
  return result;
}

ATTEST_WIDEST_VECTORS
void sum_deviations(std::span<const double> weight, const double* v, std::span<const double> o,
                    std::span<double> sums) {
  // A few columns at a time, so that their sums and their O stay in registers over all keys.
  constexpr std::size_t strip = 32;
  const std::size_t columns = o.size();
  for (std::size_t first = 0; first < columns; first += strip) {
    const std::size_t width = std::min(strip, columns - first);
    double sum[strip] = {}, centre[strip] = {};
    for (std::size_t c = 0; c < width; ++c) centre[c] = o[first + c];
    const double* row = v + first;
    if (width == strip) {
      for (std::size_t j = 0; j < weight.size(); ++j, row += columns) {
        for (std::size_t c = 0; c < strip; ++c) sum[c] += weight[j] * std::abs(row[c] - centre[c]);
      }
    } else {
      for (std::size_t j = 0; j < weight.size(); ++j, row += columns) {
        for (std::size_t c = 0; c < width; ++c) sum[c] += weight[j] * std::abs(row[c] - centre[c]);
      }
    }
    for (std::size_t c = 0; c < width; ++c) sums[first + c] = sum[c];
  }
}

void fill_row(Answer& answer, std::int64_t b, std::int64_t h, std::int64_t query,
              const OneValueRow& row) {
  for (OutputAnswer& output : answer) {
    std::ranges::fill(output.value.row(b, h, query), row.o);
    std::ranges::fill(output.bound.row(b, h, query), row.error);
    std::ranges::fill(output.own_error.row(b, h, query), row.error);
  }
  answer[forward::lse].value.at(b, h, query, 0) = row.lse;
}

void set_lse(Answer& answer, std::int64_t b, std::int64_t h, std::int64_t query,
             const BoundConstants& kernel, const BoundConstants& own, const RowErrors& row) {
  OutputAnswer& lse = answer[forward::lse];
  const double own_error = lse_error(own, row.own, row.lse);
  const double bound = row.is_vacuous ? infinity : lse_error(kernel, row.kernel, row.lse);
  lse.value.at(b, h, query, 0) = row.lse;
  lse.bound.at(b, h, query, 0) = bound + own_error;
  lse.own_error.at(b, h, query, 0) = own_error;
}

}  // namespace attest
