#pragma once

// The keys of the largest scores of one query, a block a query: radix selection
// [Alabi et al., ACM JEA 17, 2012].
//
// Idea
//   The m-th largest score is found digit by digit, 11, 11 and 10 bits: of the scores that begin
//   with what is known, a histogram of the next digit says in which of its values the m-th lies.
//   Then keys are visited in order: those above it are taken, and of those that equal it the first
//   ones until the list is full. Where a key lands is how many were taken before, a prefix sum: so
//   lists ascend, and two launches give the same one.
// Resident
//   shared     a histogram of 2048 numbers, sums of warps
// Barriers
//   Before sums of warps are read and before they are written again (exclusive_sum); before a
//   histogram is counted, read, and emptied again; before what one thread found is read.

#include "gpu/kernels/radix_select/ordered_score.cuh"
#include "gpu/kernels/radix_select/row.cuh"

namespace attest {
namespace radix_select {

inline constexpr int most_warps = 32, most_threads = most_warps * lanes;
inline constexpr int digit_bits = 11;
inline constexpr int digits = 1 << digit_bits;
inline constexpr int keys_of_thread = 4;  ///< that a thread visits at a time

/// Sums of the numbers of the threads before, and of all.
struct BlockSum {
  unsigned before, all;
};

/// All threads call; `of_warps` is shared memory for a number a warp.
inline __device__ BlockSum exclusive_sum(unsigned mine, unsigned* of_warps) {
  const unsigned lane = threadIdx.x % lanes, warp = threadIdx.x / lanes;
  const unsigned warps = blockDim.x / lanes;
  unsigned sum = mine;
  for (unsigned distance = 1; distance < lanes; distance *= 2) {
    const unsigned other = __shfl_up_sync(0xffffffffU, sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == lanes - 1) of_warps[warp] = sum;
  __syncthreads();
  unsigned of_those_before = 0, of_all = 0;
  for (unsigned w = 0; w < warps; ++w) {
    if (w < warp) of_those_before += of_warps[w];
    of_all += of_warps[w];
  }
  __syncthreads();
  return {of_those_before + sum - mine, of_all};
}

/// The m-th largest of a row's scores: what it is as far as digits are known, and how many of the
/// scores that begin so belong to the list.
struct Threshold {
  unsigned score;
  unsigned rest;
};

/// Finds the next digit, the bits [shift, shift + bits), of a threshold whose bits above it are
/// known. `found` is shared memory for one.
inline __device__ void find_digit(const Row& row, const unsigned* scores, int shift, int bits,
                                  unsigned* histogram, unsigned* of_warps, Threshold& found) {
  const unsigned known = shift + bits < 32 ? ~0U << (shift + bits) : 0U;
  const Threshold before = found;
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < digits; i += threads) histogram[i] = 0;
  __syncthreads();
  const unsigned mask = (1U << bits) - 1U;
  for (int key = row.first + thread; key < row.past; key += threads) {
    const unsigned score = scores[key];
    if (score == hidden || (score & known) != before.score) continue;
    atomicAdd(&histogram[score >> shift & mask], 1U);
  }
  __syncthreads();
  // Thread 0 has the largest values of the digit.
  const int share = digits / threads, top = digits - 1 - thread * share;
  unsigned mine = 0;
  for (int i = 0; i < share; ++i) mine += histogram[top - i];
  unsigned above = exclusive_sum(mine, of_warps).before;
  if (above < before.rest && above + mine >= before.rest) {
    int digit = top;
    while (above + histogram[digit] < before.rest) above += histogram[digit--];
    found = {before.score | static_cast<unsigned>(digit) << shift, before.rest - above};
  }
  __syncthreads();
}

/// Number of the row's keys that padding leaves.
inline __device__ unsigned visible_keys(const SelectArguments& a, const Row& row,
                                        const unsigned* scores, unsigned* of_warps) {
  if (a.key_mask == nullptr) return static_cast<unsigned>(row.past - row.first);
  unsigned mine = 0;
  for (int key = row.first + static_cast<int>(threadIdx.x); key < row.past;
       key += static_cast<int>(blockDim.x)) {
    mine += scores[key] == hidden ? 0U : 1U;
  }
  return exclusive_sum(mine, of_warps).all;
}

/// Writes the keys above the threshold and the first `rest` of those that equal it.
inline __device__ void write_list(const SelectArguments& a, const Row& row, const unsigned* scores,
                                  const Threshold& threshold, unsigned* of_warps) {
  const std::int64_t list = row.list * a.problem.top_k;
  unsigned above_before = 0, equal_before = 0;
  const int visited = static_cast<int>(blockDim.x) * keys_of_thread;
  for (int begin = row.first; begin < row.past; begin += visited) {
    const int first = begin + static_cast<int>(threadIdx.x) * keys_of_thread;
    unsigned mine[keys_of_thread];
    unsigned counts = 0;  // of keys above in the low half, of equal ones in the high half
#pragma unroll
    for (int i = 0; i < keys_of_thread; ++i) {
      mine[i] = first + i < row.past ? scores[first + i] : hidden;
      if (mine[i] == hidden) continue;
      counts +=
          (mine[i] > threshold.score ? 1U : 0U) + (mine[i] == threshold.score ? 1U << 16U : 0U);
    }
    const BlockSum sum = exclusive_sum(counts, of_warps);
    unsigned above = above_before + (sum.before & 0xffffU);
    unsigned equal = equal_before + (sum.before >> 16U);
#pragma unroll
    for (int i = 0; i < keys_of_thread; ++i) {
      if (mine[i] == hidden) continue;
      const bool is_above = mine[i] > threshold.score;
      const bool is_equal = mine[i] == threshold.score;
      if (is_above || (is_equal && equal < threshold.rest)) {
        const std::int64_t at = list + above + min(equal, threshold.rest);
        a.keys[at] = first + i;
        a.scores[at] = score_of(mine[i]);
      }
      above += is_above ? 1U : 0U;
      equal += is_equal ? 1U : 0U;
    }
    above_before += sum.all & 0xffffU;
    equal_before += sum.all >> 16U;
  }
}

template <Executor home>
__global__ void __launch_bounds__(most_threads) choose_largest(SelectArguments a) {
  __shared__ unsigned histogram[digits];
  __shared__ unsigned of_warps[most_warps];
  __shared__ Threshold threshold;
  const Row row(a, blockIdx.x);
  const unsigned* const scores = row.scores(a);
  // Without room nobody scored them.
  const unsigned visible = a.problem.top_k == 0 ? 0U : visible_keys(a, row, scores, of_warps);
  const unsigned count = min(visible, static_cast<unsigned>(a.problem.top_k));
  if (threadIdx.x == 0) threshold = {0, count};
  __syncthreads();
  if (count > 0) {
    // Nothing is left out: all are above what stands for a hidden key.
    if (count < visible) {
      for (int shift = 32 - digit_bits; shift > -digit_bits; shift -= digit_bits) {
        const int low = max(shift, 0);
        find_digit(row, scores, low, digit_bits - (low - shift), histogram, of_warps, threshold);
      }
    }
    write_list(a, row, scores, threshold, of_warps);
  }
  for (std::int64_t i = count + threadIdx.x; i < a.problem.top_k; i += blockDim.x) {
    a.keys[row.list * a.problem.top_k + i] = -1;
    a.scores[row.list * a.problem.top_k + i] = -INFINITY;
  }
  if (threadIdx.x == 0) a.counts[row.list] = static_cast<std::int32_t>(count);
}

}  // namespace radix_select
}  // namespace attest
