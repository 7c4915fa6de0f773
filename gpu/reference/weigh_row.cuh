#pragma once

#include <cmath>
#include <cstdint>

#include "core/attention/problem.hpp"
#include "cpu_reference/forward/row_terms.hpp"
#include "gpu/primitives/launch.cuh"

namespace attest {

// Steps 2 and 3 of error_bound.hpp for one row by one block: what weigh_row does on the CPU. A row
// is too long for shared memory, so the time is that of the passes over it in global memory: three,
// where the errors are small and no key has most of the weight. A pass recomputes from a dot
// product and an absolute dot product what follows from them: less than to load it.

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

/// One block's work on one row; `scratch` has a double for each of its warps.
class BlockWeigher {
 public:
  __device__ BlockWeigher(const RowOfScores& row, double* scratch) : row_(row), scratch_(scratch) {}

  /// All threads return the same errors. Overwrites the row's dots and absolute sums.
  __device__ RowErrors weigh(const BoundConstants& kernel, const BoundConstants& own,
                             bool scale_is_folded) {
    RowErrors result;
    const Step3 of_kernel = perturb(kernel);
    const double scaled = of_kernel.largest_dot * fabs(row_.scale);
    const double largest_value =
        scale_is_folded || row_.scale == 0 ? scaled : fmax(of_kernel.largest_dot, scaled);
    result.is_vacuous = !(largest_value * (1 + kernel.score_relative) < kernel.max_finite);
    result.lse = lse_;
    result.kernel = of_kernel.summary;
    if (result.kernel.growth <= largest_useful_growth) {
      result.own_share = share_of(own, kernel);
      result.own.growth = result.own_share * result.kernel.growth;
      result.own.log_growth = result.own_share * result.kernel.log_growth;
      result.own.normaliser_floor = 1;
      result.denominator = of_kernel.denominator;
      if (!of_kernel.is_written) write(kernel, of_kernel);
    } else {
      const Step3 of_own = perturb(own);
      result.own = of_own.summary;
      result.denominator = of_own.denominator;
      if (!of_own.is_written) write(own, of_own);
    }
    clear_hidden(row_);
    return result;
  }

 private:
  struct Step3 {
    RowSummary<double> summary{};
    double denominator = 1;
    double largest_dot = 0;
    double top_score = 0, magnitude = 0;
    double largest = 0, top_exponent = 0;  ///< of the H_j, of the s_j - LSE + H_j
    double common = 0;                     ///< H of the heaviest key
    bool is_centred = false;               ///< around the heaviest key
    bool is_written = false;

    /// The limit is that of the CPU's two ways: centred errors are at most twice the largest.
    __device__ bool has_short_series() const { return largest < short_series / 2; }
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
  struct WeightAndChange {
    double p, phi, decayed;  ///< decayed: p e^-H
  };
  __device__ WeightAndChange weight(const BoundConstants& c, const Step3& s, std::int64_t j) const {
    const double score = row_.score(j), h = total_error(c, s, j);
    const double p = exp(score - maximum_) / normaliser_;
    if (s.has_short_series()) return {p, p * small_growth(h), p * small_decay(h)};
    return {p, weight_change(score - lse_, 0, h), exp(score - lse_ - h)};
  }
  /// Every thread overwrites keys that only it reads.
  __device__ void store(std::int64_t j, const WeightAndChange& w) {
    row_.dots[j] = w.p;
    row_.absolute[j] = w.phi;
  }

  /// First pass: what a maximum is enough for.
  __device__ void find_extremes(const BoundConstants& c, Step3& s) {
    double maximum = -HUGE_VAL, top = -HUGE_VAL, magnitude = 0, largest_dot = 0;
#pragma unroll 4
    for (std::int64_t j = first(); j < row_.visible; j += weigh_threads) {
      const double error = delta(c, j);
      maximum = fmax(maximum, row_.score(j));
      top = fmax(top, row_.score(j) + error);
      magnitude = fmax(magnitude, fabs(row_.score(j)) + error);
      largest_dot = fmax(largest_dot, row_.absolute[j]);
    }
    maximum_ = over_block(maximum, LargerOf{}, scratch_);
    s.top_score = over_block(top, LargerOf{}, scratch_);
    s.magnitude = over_block(magnitude, LargerOf{}, scratch_);
    s.largest_dot = over_block(largest_dot, LargerOf{}, scratch_);
  }

  /// Second pass: the normaliser and the extremes of the errors in the exponent.
  __device__ void normalise(const BoundConstants& c, Step3& s) {
    double sum = 0, largest = 0, top_exponent = -HUGE_VAL, common = 0;
#pragma unroll 4
    for (std::int64_t j = first(); j < row_.visible; j += weigh_threads) {
      const double score = row_.score(j), h = log_error(c, s, j);
      sum += exp(score - maximum_);
      largest = fmax(largest, h);
      top_exponent = fmax(top_exponent, score - maximum_ + h);
      if (score == maximum_) common = fmax(common, h);
    }
    normaliser_ = over_block(sum, SumOf{}, scratch_);
    lse_ = maximum_ + log(normaliser_);
    s.largest = over_block(largest, LargerOf{}, scratch_);
    s.top_exponent = over_block(top_exponent, LargerOf{}, scratch_) - log(normaliser_);
    s.common = over_block(common, LargerOf{}, scratch_);
  }

  struct Candidate {
    double sum, denominator;
    __device__ double growth() const { return sum / denominator; }
  };
  /// Third pass, and a fourth where a key has most of the weight.
  template <bool writes>
  __device__ Candidate sums(const BoundConstants& c, const Step3& s) {
    double sum = 0, denominator = 0;
#pragma unroll 4
    for (std::int64_t j = first(); j < row_.visible; j += weigh_threads) {
      const WeightAndChange w = weight(c, s, j);
      sum += w.phi;
      denominator += w.decayed;
      if (writes) store(j, w);
    }
    const double all = over_block(sum, SumOf{}, scratch_);
    return {all, over_block(denominator, SumOf{}, scratch_)};
  }

  __device__ Step3 perturb(const BoundConstants& c) {
    Step3 s;
    find_extremes(c, s);
    normalise(c, s);
    const bool can_sum = s.top_exponent <= largest_summed_exponent;
    // The largest weight is 1 / normaliser. Above one half it belongs to one key only.
    const bool has_heavy_key = 1 / normaliser_ > 0.5;
    // Then no later pass needs the scores: the growth is below 2 * largest, so it is useful.
    static_assert(short_series <= largest_useful_growth);
    s.is_written = s.has_short_series() && can_sum && !has_heavy_key && !c.forms_weights_twice;
    const Candidate plain = s.is_written ? sums<true>(c, s) : sums<false>(c, s);
    s.denominator = plain.denominator;
    s.summary.growth = can_sum ? plain.growth() : HUGE_VAL;
    s.summary.log_growth =
        can_sum ? log1p(plain.sum) : s.top_exponent + log(static_cast<double>(row_.visible));
    s.summary.largest_magnitude = s.magnitude;
    s.summary.normaliser_floor =
        normaliser_floor(c, s.magnitude, lse_ - s.top_score, plain.denominator);
    if (c.forms_weights_twice) {
      double twice_formed = 0;
      for (std::int64_t j = first(); j < row_.visible; j += weigh_threads) {
        const double h = log_error(c, s, j);
        twice_formed += weight_change(row_.score(j) - lse_, h, 2 * (h - delta(c, j)));
      }
      s.summary.twice_formed = over_block(twice_formed, SumOf{}, scratch_) / plain.denominator;
    }
    if (can_sum && has_heavy_key) {
      s.is_centred = true;
      const Candidate centred = sums<false>(c, s);
      s.is_centred = centred.growth() < plain.growth();
      if (s.is_centred) {
        s.summary.growth = centred.growth();
        s.denominator = centred.denominator;
      }
    }
    return s;
  }

  __device__ void write(const BoundConstants& c, const Step3& s) {
    for (std::int64_t j = first(); j < row_.visible; j += weigh_threads) store(j, weight(c, s, j));
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
  double maximum_ = 0, normaliser_ = 1, lse_ = 0;
};

}  // namespace attest
