#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace attest {

/// File descriptors of a worker when it starts: a socket to its parent, and a page of memory that
/// both see (ActivityNote).
inline constexpr int worker_channel_fd = 0;
inline constexpr int worker_note_fd = 3;

/// A worker's end of the channel: lines over a socket.
class LineChannel {
 public:
  explicit LineChannel(int fd) : fd_(fd) {}
  /// Without its newline; nothing when the parent hung up.
  [[nodiscard]] std::optional<std::string> receive();
  /// Adds the newline. A parent that is gone does not matter any more.
  void send(std::string line);

 private:
  int fd_;
  std::string unread_;
};

/// Sends all bytes; false if the other end is gone. Never raises SIGPIPE.
[[nodiscard]] bool send_all(int fd, std::string_view bytes);

}  // namespace attest
