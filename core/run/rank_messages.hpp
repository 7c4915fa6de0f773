#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.hpp"

namespace attest {

/// A rank waits for a message that nobody will send: its own mistake, or what follows from the
/// failure of another rank.
class MessageNeverComes : public KernelError {
 public:
  using KernelError::KernelError;
};

/// Messages between ranks that are threads of one process. A message is a copy: the sender may
/// change what it sent, and does not wait. What would hang real ranks is a KernelError here: a rank
/// that waits for what nobody will send, a message of another size than is received, and one that
/// is never received.
class RankMessages {
 public:
  explicit RankMessages(std::int64_t ranks);

  void send(std::int64_t from, std::int64_t to, std::span<const std::byte> bytes);
  /// Waits for the next message of `from` to `to`, in the order in which they were sent. Throws
  /// MessageNeverComes where none can come, and KernelError where it has another size.
  void receive(std::int64_t from, std::int64_t to, std::span<std::byte> bytes);
  /// A rank ends, by itself or by an error; the others may wait for it no more.
  void leave(std::int64_t rank, bool has_failed);
  /// A sentence about a message that nobody received; empty: none. After all ranks have left.
  [[nodiscard]] std::string left_over() const;
  /// Bytes that each rank has sent to others. After all ranks have left.
  [[nodiscard]] const std::vector<std::size_t>& sent_bytes() const { return sent_bytes_; }

 private:
  using Mailbox = std::deque<std::vector<std::byte>>;
  [[nodiscard]] Mailbox& mailbox(std::int64_t from, std::int64_t to) {
    return mailboxes_[static_cast<std::size_t>(to * ranks_ + from)];
  }
  [[nodiscard]] bool nobody_runs() const;

  const std::int64_t ranks_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Mailbox> mailboxes_;       ///< of receiver and sender
  std::vector<std::int64_t> waits_for_;  ///< sender that a rank waits for; -1: none
  std::vector<bool> has_left_;
  std::vector<std::size_t> sent_bytes_;
  bool has_failed_ = false;
};

}  // namespace attest
