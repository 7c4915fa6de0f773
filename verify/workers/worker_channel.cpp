#include "verify/workers/worker_channel.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "core/base/subprocess.hpp"

namespace attest {
namespace {

/// The number at the start of the text and the space after it are taken away.
template <typename Number>
std::optional<Number> take_number(std::string_view& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data() + text.size() || *end != ' ') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

}  // namespace

std::string sealed(const Letter& letter) {
  return fmt::format("{} {} {}", letter.question, letter.process, letter.text);
}

std::optional<Letter> opened(std::string_view line) {
  const auto question = take_number<std::uint64_t>(line);
  const auto process = question ? take_number<pid_t>(line) : std::nullopt;
  if (!process) return std::nullopt;
  return Letter{.question = *question, .process = *process, .text = std::string(line)};
}

LineChannel::LineChannel(int fd) : fd_(fd), process_(getpid()) {}

std::optional<std::string> LineChannel::receive() {
  std::array<char, 4096> buffer{};
  while (true) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::optional<Letter> letter = opened(std::string_view(unread_).substr(0, end));
      unread_.erase(0, end + 1);
      if (!letter) return std::nullopt;
      question_ = letter->question;
      return std::move(letter->text);
    }
    const ssize_t size = recv(fd_, buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return std::nullopt;
    unread_.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

void LineChannel::send(std::string text) {
  if (getpid() != process_) _exit(0);
  (void)send_all(
      fd_, sealed({.question = question_, .process = process_, .text = std::move(text)}) + '\n');
}

}  // namespace attest
