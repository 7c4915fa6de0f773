#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace attest {

/// File descriptors of a worker when it starts: a socket to its parent, and a page of memory that
/// both see (ActivityNote).
inline constexpr int worker_channel_fd = 0;
inline constexpr int worker_note_fd = 3;

/// A line on the channel: which question it is or answers, counted from 1, and which process wrote
/// it. A kernel may write to the channel, or fork a child that does.
struct Letter {
  std::uint64_t question = 0;
  pid_t process = 0;
  std::string text;
};
/// Without a newline.
[[nodiscard]] std::string sealed(const Letter& letter);
/// Nothing for a line that `sealed` did not write.
[[nodiscard]] std::optional<Letter> opened(std::string_view line);

/// A worker's end of the channel: questions and answers, a line each, over a socket.
class LineChannel {
 public:
  explicit LineChannel(int fd);
  /// The next question; nothing when the parent hung up, or sent something else.
  [[nodiscard]] std::optional<std::string> receive();
  /// The answer to the question received last. A parent that is gone does not matter any more. A
  /// child that a kernel forked ends here: it was asked nothing.
  void send(std::string text);

 private:
  int fd_;
  pid_t process_;
  std::uint64_t question_ = 0;
  std::string unread_;
};

}  // namespace attest
