#include "verify/worker_channel.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace attest {

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::optional<std::string> LineChannel::receive() {
  std::array<char, 4096> buffer{};
  while (true) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    const ssize_t size = recv(fd_, buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return std::nullopt;
    unread_.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

void LineChannel::send(std::string line) {
  line += '\n';
  (void)send_all(fd_, line);
}

}  // namespace attest
