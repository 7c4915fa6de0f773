#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"
#include "gpu/model/device_table.hpp"

namespace attest {
// What a forward pass or its gradients cost that several GPUs share, a part of the tokens each:
// arithmetic on who has which tokens. Times are at best: a GPU is as fast on a part as on the
// whole, memory is no limit, a message has no latency and takes no multiprocessor, and a step ends
// when its slowest rank and its exchange have ended. Held against two H200s:
// gpu/kernels/ring/README.md.

/// Rates of one GPU of a group.
struct RankRates {
  double flops_per_s = 0;       ///< of attention
  double link_bytes_per_s = 0;  ///< in one direction, while as much comes in
};
/// FLOP/s at which the GPU can do attention, or its gradients, at best: the products at the peak of
/// the element type, an exponential a pair.
[[nodiscard]] double attention_flops_per_s(const GpuModel& gpu, const Problem& problem);

/// Computing and an exchange that go on at the same time. Either may be 0.
struct RankStep {
  double computing_s = 0;  ///< of the rank with most work
  double exchange_s = 0;   ///< of the rank with most bytes

  [[nodiscard]] double longer_s() const {
    return computing_s < exchange_s ? exchange_s : computing_s;
  }
};

/// A forward or a backward pass by a group, step by step.
struct RankTimes {
  double alone_s = 0;                ///< one GPU, the whole problem
  std::vector<RankStep> steps{};     ///< one after the other
  std::vector<double> sent_bytes{};  ///< by each rank, to others

  [[nodiscard]] double ranks() const { return static_cast<double>(sent_bytes.size()); }
  [[nodiscard]] double time_s() const { return sum(&RankStep::longer_s); }
  [[nodiscard]] double computing_s() const { return sum(&RankStep::computing_s); }
  [[nodiscard]] double exchange_s() const { return sum(&RankStep::exchange_s); }
  /// Time of one GPU over that of all GPUs together: 1 where nothing is lost.
  [[nodiscard]] double efficiency() const { return share_of(time_s()); }
  /// Efficiency if nothing overlapped.
  [[nodiscard]] double efficiency_without_overlap() const {
    return share_of(computing_s() + exchange_s());
  }
  /// Efficiency if exchanges took no time: less than 1 where the slowest rank has more work.
  [[nodiscard]] double balance() const { return share_of(computing_s()); }

 private:
  template <typename Member>
  [[nodiscard]] double sum(Member member) const {
    return std::accumulate(steps.begin(), steps.end(), 0.0, [&](double all, const RankStep& step) {
      return all + std::invoke(member, step);
    });
  }
  [[nodiscard]] double share_of(double seconds) const {
    return seconds > 0 ? alone_s / (ranks() * seconds) : 1;
  }
};

/// A sentence about a problem that the functions below cannot take, or empty: they are about
/// forward and backward passes with entries of one length without padding, prefix, documents and
/// lists of keys.
[[nodiscard]] std::string why_no_rank_model(const Problem& problem);

/// Ring attention: in each step a rank attends to one part of the keys and sends it on; the last
/// step sends nothing [Liu et al. 2023, arXiv 2310.01889]. Of gradients, dK and dV of a step, in
/// the elements' type, go to the keys' owner during the next, and a rank's own keys are met twice,
/// with half of the work at the beginning and half at the end (ring_steps_with_own_last()).
[[nodiscard]] RankTimes ring_times(const Problem& problem, std::int64_t ranks,
                                   std::int64_t distribution, const RankRates& rates);
/// Ulysses: an exchange gives each rank all tokens of some kv heads, it computes, and a second one
/// gives O and LSE back; nothing overlaps [Jacobs et al. 2023, arXiv 2309.14509]. Of gradients O,
/// LSE and dO come as Q does, and dQ, dK and dV go back. Ranks past the number of kv heads have no
/// work.
[[nodiscard]] RankTimes ulysses_times(const Problem& problem, std::int64_t ranks,
                                      std::int64_t distribution, const RankRates& rates);

/// Queries of an entry that each rank of a ring must have so that computing takes as long as the
/// exchange, in every step but the first: with more of them the exchange hides. Without a mask
/// (F / B) (e / 2) (kv_heads / query_heads), at F FLOP/s and B bytes/s, of elements of e bytes; the
/// number of keys and of entries does not matter. Of gradients it is 4/5 of that: twice the bytes,
/// 5 products instead of 2. Under a causal mask zigzag and stripe
/// need twice as many, since a rank sees half of the pairs; contiguous as many, as the last rank
/// sees all. Nothing for windows and for causal masks of other lengths than query_len = key_len,
/// where steps differ.
[[nodiscard]] std::optional<double> break_even_queries(const Problem& problem,
                                                       std::int64_t distribution,
                                                       const RankRates& rates);

/// Pairs of a head that a rank's queries and another's keys form: those that see each other.
[[nodiscard]] double visible_pairs_of(const Problem& problem, std::int64_t ranks,
                                      std::int64_t distribution, std::int64_t query_rank,
                                      std::int64_t key_rank);

}  // namespace attest
