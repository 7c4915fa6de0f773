#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/attention/tensor_list.hpp"
#include "core/run/arguments.hpp"
#include "core/run/rank_messages.hpp"

namespace attest {

/// Rows of a tensor that one rank has: those of entry b follow each other from row starts[b] on.
struct RankRows {
  std::vector<std::int64_t> starts;  ///< [batch + 1]
  std::vector<std::int64_t> tokens;  ///< of each row: its position in its entry

  [[nodiscard]] std::int64_t count() const { return starts.back(); }
};

/// Arguments of one rank of a group, of a launch of forward_operation. Its tensors are packed,
/// contiguous [1, heads, rows, columns], and begin at multiples of 256 bytes. Which keys are hidden
/// (Problem::is_padded) and how long entries are, all ranks know.
struct RankLaunch {
  std::int64_t rank = 0;
  const Problem& problem;  ///< of the whole sequences
  const Plan& plan;        ///< ranks and distribution say who has what
  const RankRows& queries;
  const RankRows& keys;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;
  float* lse = nullptr;  ///< [heads, rows]
  RankMessages& messages;

  [[nodiscard]] std::int64_t ranks() const { return plan.ranks; }
  /// `distance` ranks further round the ring.
  [[nodiscard]] std::int64_t neighbour(std::int64_t distance) const {
    return (rank + distance % ranks() + ranks()) % ranks();
  }
  void send(std::int64_t to, std::span<const std::byte> bytes) const {
    messages.send(rank, to, bytes);
  }
  void receive(std::int64_t from, std::span<std::byte> bytes) const {
    messages.receive(from, rank, bytes);
  }
};

/// The program that every rank runs.
using RankProgram = std::function<void(const RankLaunch&)>;

/// Rows of the queries, or of the keys, that a rank has of a problem; entries are distributed one
/// by one, by their own lengths.
[[nodiscard]] RankRows rows_of_rank(const Problem& problem, Rows rows, const Plan& plan,
                                    std::int64_t rank);

/// O and LSE of forward_operation by plan.ranks virtual ranks: threads of this process, each with
/// its own part of Q, K and V between guards and O and LSE poisoned; messages are copies. Throws
/// KernelError that names the rank when one throws, waits for ever, leaves a message, changes its
/// inputs or writes past its outputs. What a rank does not write is NaN.
[[nodiscard]] Outputs run_rank_group(const Problem& problem, const Plan& plan, const Inputs& inputs,
                                     const RankProgram& program);

/// Counts what ranks of groups that this thread runs send to others, from when it is made on. One
/// at a time.
class CountedMessages {
 public:
  CountedMessages();
  ~CountedMessages();
  CountedMessages(const CountedMessages&) = delete;
  CountedMessages& operator=(const CountedMessages&) = delete;

  /// Bytes by each rank in the group that ended last.
  [[nodiscard]] const std::vector<std::size_t>& sent_bytes() const { return sent_bytes_; }
  void count(const RankMessages& messages) { sent_bytes_ = messages.sent_bytes(); }

 private:
  std::vector<std::size_t> sent_bytes_;
};

}  // namespace attest
