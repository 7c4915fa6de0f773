#pragma once

#include <cmath>
#include <cstdint>

#include "core/problem.hpp"
#include "cpu_reference/row_terms.hpp"
#include "gpu/primitives/launch.cuh"

namespace attest {

// Steps 2 and 3 of error_bound.hpp for one row by one block: what weigh_row does on the CPU. A pass
// reads a dot product and an absolute dot product for each key and recomputes what follows from
// them, which costs less than to store it.

inline constexpr int weigh_threads = 256;

struct SumOf {
  __device__ double operator()(double a, double b) const { return a + b; }
};
struct LargerOf {
  __device__ double operator()(double a, double b) const { return a > b ? a : b; }
};

/// Combines one value of every thread; all get the result. The order is fixed: a tree over lanes,
/// then over warps. Barriers: before and after the warps' results are written.
template <typename Combine>
__device__ double over_block(double value, Combine combine, double* scratch) {
  for (int step = 16; step > 0; step /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, step));
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  double result = scratch[0];
  for (int warp = 1; warp < weigh_threads / 32; ++warp) result = combine(result, scratch[warp]);
  return result;
}

/// A row's keys as the block sees them.
struct RowOfScores {
  double* dots;      ///< in: q.k_j; out: p_j
  double* absolute;  ///< in: sum |q k_j|; out: phi_j
  std::int64_t visible;
  std::int64_t padded;  ///< weights are 0 from `visible` up to here
  double scale;

  __device__ double score(std::int64_t j) const { return dots[j] * scale; }
  __device__ double absolute_score(std::int64_t j) const { return absolute[j] * fabs(scale); }
};

class BlockWeigher {
 public:
  __device__ BlockWeigher(const RowOfScores& row, double* scratch) : row_(row), scratch_(scratch) {}

  /// All threads return the same errors. Overwrites the row's dots and absolute sums.
  __device__ RowErrors weigh(const BoundConstants& kernel, const BoundConstants& own,
                             bool scale_is_folded) {
    RowErrors result;
    double largest_dot = 0, maximum = -HUGE_VAL;
    for (std::int64_t j = first(); j < row_.visible; j += weigh_threads) {
      largest_dot = fmax(largest_dot, row_.absolute[j]);
      maximum = fmax(maximum, row_.score(j));
    }
    largest_dot = over_block(largest_dot, LargerOf{}, scratch_);
    maximum_ = over_block(maximum, LargerOf{}, scratch_);
    const double scaled = largest_dot * fabs(row_.scale);
    const double largest_value =
        scale_is_folded || row_.scale == 0 ? scaled : fmax(largest_dot, scaled);
    result.is_vacuous = !(largest_value * (1 + kernel.score_relative) < kernel.max_finite);

    double sum = 0;
    for (std::int64_t j = first(); j < row_.visible; j += weigh_threads) {
      sum += exp(row_.score(j) - maximum_);
    }
    normaliser_ = over_block(sum, SumOf{}, scratch_);
    result.lse = maximum_ + log(normaliser_);

    const Step3 of_kernel = perturb(kernel, result.lse);
    Step3 written = of_kernel;
    result.kernel = of_kernel.summary;
    if (result.kernel.growth <= largest_useful_growth) {
      result.own_share = share_of(own, kernel);
      result.own.growth = result.own_share * result.kernel.growth;
      result.own.log_growth = result.own_share * result.kernel.log_growth;
      result.own.normaliser_floor = 1;
      write(kernel, written, result.lse);
    } else {
      written = perturb(own, result.lse);
      result.own = written.summary;
      write(own, written, result.lse);
    }
    result.denominator = written.denominator;
    return result;
  }

 private:
  struct Step3 {
    RowSummary<double> summary{};
    double denominator = 1;
    double top_score = 0, magnitude = 0, largest = 0;  ///< of the H_j
    bool is_centred = false;
    double common = 0;  ///< H of the heaviest key, if centred around it
  };

  __device__ std::int64_t first() const { return threadIdx.x; }

  __device__ double delta(const BoundConstants& c, std::int64_t j) const {
    return score_error(c, row_.score(j), row_.absolute_score(j));
  }
  __device__ double log_error(const BoundConstants& c, const Step3& s, std::int64_t j) const {
    return log_weight_error(c, row_.score(j), delta(c, j), s.top_score, s.magnitude);
  }
  /// H of the key in the sums: the common part added, the heaviest key's own cancelled.
  __device__ double total_error(const BoundConstants& c, const Step3& s, std::int64_t j) const {
    if (!s.is_centred) return log_error(c, s, j);
    return row_.score(j) == maximum_ ? 0 : log_error(c, s, j) + s.common;
  }
  __device__ double change(const Step3& s, double score, double h, double lse) const {
    // The limit is that of the CPU's two ways: centred errors are at most twice the largest.
    if (s.largest < short_series / 2) return exp(score - maximum_) / normaliser_ * small_growth(h);
    return weight_change(score - lse, 0, h);
  }

  struct Candidate {
    double sum, denominator;
    __device__ double growth() const { return sum / denominator; }
  };
  __device__ Candidate sums(const BoundConstants& c, const Step3& s, double lse) {
    double sum = 0, denominator = 0;
    for (std::int64_t j = first(); j < row_.visible; j += weigh_threads) {
      const double score = row_.score(j), h = total_error(c, s, j);
      if (s.largest < short_series / 2) {
        const double weight = exp(score - maximum_) / normaliser_;
        sum += weight * small_growth(h);
        denominator += weight * small_decay(h);
      } else {
        sum += weight_change(score - lse, 0, h);
        denominator += exp(score - lse - h);
      }
    }
    const double all = over_block(sum, SumOf{}, scratch_);
    return {all, over_block(denominator, SumOf{}, scratch_)};
  }

  __device__ Step3 perturb(const BoundConstants& c, double lse) {
    Step3 s;
    double top = -HUGE_VAL, magnitude = 0;
    for (std::int64_t j = first(); j < row_.visible; j += weigh_threads) {
      const double error = delta(c, j);
      top = fmax(top, row_.score(j) + error);
      magnitude = fmax(magnitude, fabs(row_.score(j)) + error);
    }
    s.top_score = over_block(top, LargerOf{}, scratch_);
    s.magnitude = over_block(magnitude, LargerOf{}, scratch_);
    double largest = 0, top_exponent = -HUGE_VAL, common = 0;
    for (std::int64_t j = first(); j < row_.visible; j += weigh_threads) {
      const double h = log_error(c, s, j);
      largest = fmax(largest, h);
      top_exponent = fmax(top_exponent, row_.score(j) - lse + h);
      if (row_.score(j) == maximum_) common = fmax(common, h);
    }
    s.largest = over_block(largest, LargerOf{}, scratch_);
    top_exponent = over_block(top_exponent, LargerOf{}, scratch_);
    common = over_block(common, LargerOf{}, scratch_);

    const Candidate plain = sums(c, s, lse);
    const bool can_sum = top_exponent <= largest_summed_exponent;
    s.denominator = plain.denominator;
    s.summary.growth = can_sum ? plain.growth() : HUGE_VAL;
    s.summary.log_growth =
        can_sum ? log1p(plain.sum) : top_exponent + log(static_cast<double>(row_.visible));
    s.summary.largest_magnitude = s.magnitude;
    s.summary.normaliser_floor =
        normaliser_floor(c, s.magnitude, lse - s.top_score, plain.denominator);
    if (c.forms_weights_twice) {
      double twice_formed = 0;
      for (std::int64_t j = first(); j < row_.visible; j += weigh_threads) {
        const double h = log_error(c, s, j);
        twice_formed += weight_change(row_.score(j) - lse, h, 2 * (h - delta(c, j)));
      }
      s.summary.twice_formed = over_block(twice_formed, SumOf{}, scratch_) / plain.denominator;
    }
    // The largest weight is 1 / normaliser. Above one half it belongs to one key only.
    if (can_sum && 1 / normaliser_ > 0.5) {
      s.is_centred = true;
      s.common = common;
      const Candidate centred = sums(c, s, lse);
      if (centred.growth() < plain.growth()) {
        s.summary.growth = centred.growth();
        s.denominator = centred.denominator;
      } else {
        s.is_centred = false;
      }
    }
    return s;
  }

  /// Every thread overwrites the keys that only it has read.
  __device__ void write(const BoundConstants& c, const Step3& s, double lse) {
    for (std::int64_t j = first(); j < row_.visible; j += weigh_threads) {
      const double score = row_.score(j);
      const double phi = change(s, score, total_error(c, s, j), lse);
      row_.dots[j] = exp(score - maximum_) / normaliser_;
      row_.absolute[j] = phi;
    }
    clear_hidden(row_);
  }

 public:
  __device__ static void clear_hidden(const RowOfScores& row) {
    for (std::int64_t j = row.visible + threadIdx.x; j < row.padded; j += weigh_threads) {
      row.dots[j] = row.absolute[j] = 0;
    }
  }

 private:
  const RowOfScores row_;
  double* const scratch_;
  double maximum_ = 0, normaliser_ = 1;
};

}  // namespace attest
