#include "core/run/rank_messages.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace attest {
namespace {

constexpr std::int64_t nobody = -1;

}  // namespace

RankMessages::RankMessages(std::int64_t ranks)
    : ranks_(ranks),
      mailboxes_(static_cast<std::size_t>(ranks * ranks)),
      waits_for_(static_cast<std::size_t>(ranks), nobody),
      has_left_(static_cast<std::size_t>(ranks)),
      sent_bytes_(static_cast<std::size_t>(ranks)) {}

void RankMessages::send(std::int64_t from, std::int64_t to, std::span<const std::byte> bytes) {
  const std::scoped_lock lock(mutex_);
  mailbox(from, to).emplace_back(bytes.begin(), bytes.end());
  if (from != to) sent_bytes_[static_cast<std::size_t>(from)] += bytes.size();
  changed_.notify_all();
}

/// No rank can send any more: each has left, or waits for a message that is not there.
bool RankMessages::nobody_runs() const {
  for (std::int64_t rank = 0; rank < ranks_; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (has_left_[at]) continue;
    if (waits_for_[at] == nobody) return false;
    if (!mailboxes_[static_cast<std::size_t>(rank * ranks_ + waits_for_[at])].empty()) return false;
  }
  return true;
}

void RankMessages::receive(std::int64_t from, std::int64_t to, std::span<std::byte> bytes) {
  std::unique_lock lock(mutex_);
  Mailbox& box = mailbox(from, to);
  waits_for_[static_cast<std::size_t>(to)] = from;
  // The last rank that begins to wait finds that nobody runs, and wakes the others.
  if (nobody_runs()) changed_.notify_all();
  changed_.wait(lock, [&] { return !box.empty() || has_failed_ || nobody_runs(); });
  if (box.empty()) {
    throw MessageNeverComes(
        fmt::format("rank {} waits for a message of rank {} that never comes", to, from));
  }
  waits_for_[static_cast<std::size_t>(to)] = nobody;
  const std::vector<std::byte> message = std::move(box.front());
  box.pop_front();
  if (message.size() != bytes.size()) {
    throw KernelError(fmt::format("rank {} sent {} bytes to rank {}, which receives {}", from,
                                  message.size(), to, bytes.size()));
  }
  std::ranges::copy(message, bytes.begin());
}

void RankMessages::leave(std::int64_t rank, bool has_failed) {
  const std::scoped_lock lock(mutex_);
  has_left_[static_cast<std::size_t>(rank)] = true;
  has_failed_ = has_failed_ || has_failed;
  changed_.notify_all();
}

std::string RankMessages::left_over() const {
  const std::scoped_lock lock(mutex_);
  for (std::int64_t to = 0; to < ranks_; ++to) {
    for (std::int64_t from = 0; from < ranks_; ++from) {
      const std::size_t count = mailboxes_[static_cast<std::size_t>(to * ranks_ + from)].size();
      if (count > 0) {
        return fmt::format("rank {} did not receive {} of rank {}'s messages", to, count, from);
      }
    }
  }
  return {};
}

}  // namespace attest
