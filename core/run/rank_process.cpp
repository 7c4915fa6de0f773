#include "core/run/rank_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

#include "core/base/error.hpp"

namespace attest {
namespace {

std::map<std::string, RankWork>& works() {
  static std::map<std::string, RankWork> all;
  return all;
}

/// The first word of a text, and what follows the space behind it.
std::pair<std::string, std::string> first_word(const std::string& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  return {text.substr(0, end), text.substr(std::min(end + 1, text.size()))};
}

std::pair<std::int64_t, std::string> first_number(const std::string& text) {
  auto [word, rest] = first_word(text);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size()) {
    throw MachineError(fmt::format("a rank was sent '{}' where a number belongs", word));
  }
  return {number, std::move(rest)};
}

std::string answer_to(const std::string& task, RankChannel& channel) {
  const auto [name, text] = first_word(task);
  const auto work = works().find(name);
  if (work == works().end()) {
    throw MachineError(fmt::format("this program has no ranks of '{}'", name));
  }
  return work->second(text, channel);
}

}  // namespace

void RankChannel::send(std::string_view kind, std::string_view text) {
  std::string line = fmt::format("{} {}", kind, text);
  std::ranges::replace(line, '\n', ' ');
  if (!send_all(socket_.get(), line + '\n')) throw ChannelClosed();
}

std::pair<std::string, std::string> RankChannel::receive() {
  std::size_t end = 0;
  while ((end = unread_.find('\n')) == std::string::npos) {
    std::array<char, 16384> buffer{};
    const ssize_t size = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) throw ChannelClosed();
    unread_.append(buffer.data(), static_cast<std::size_t>(size));
  }
  const std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return first_word(line);
}

std::string RankChannel::next_task() {
  const auto [kind, rest] = receive();
  if (kind != "task") {
    throw MachineError(fmt::format("rank {} was sent a '{}' where a task belongs", rank_, kind));
  }
  const auto [number, group] = first_number(rest);
  auto [ranks, text] = first_number(group);
  task_ = number;
  ranks_ = ranks;
  return std::move(text);
}

void RankChannel::answer(std::string_view text) {
  send("answer", fmt::format("{} {}", task_, text));
}

std::string RankChannel::hear(std::int64_t rank) {
  std::deque<std::string>& lines = heard_[rank];
  while (lines.empty()) {
    const auto [kind, rest] = receive();
    if (kind != "from") {
      throw MachineError(
          fmt::format("rank {} was sent a '{}' in the midst of a task", rank_, kind));
    }
    auto [from, text] = first_number(rest);
    heard_[from].push_back(std::move(text));
  }
  std::string line = std::move(lines.front());
  lines.pop_front();
  return line;
}

void RankChannel::meet() {
  constexpr std::string_view here = "here";
  tell(here);
  for (std::int64_t other = 0; other < ranks_; ++other) {
    if (other == rank_) continue;
    if (const std::string said = hear(other); said != here) {
      throw MachineError(
          fmt::format("rank {} waits for rank {}, which says '{}'", rank_, other, said));
    }
  }
}

RankWorkRegistration::RankWorkRegistration(const std::string& name, RankWork work) {
  works().emplace(name, std::move(work));
}

void end_with_other_end_of(int socket) {
  std::thread([socket] {
    pollfd closed{.fd = socket, .events = POLLRDHUP, .revents = 0};
    while (poll(&closed, 1, -1) < 0 && errno == EINTR) {
    }
    std::_Exit(0);
  }).detach();
}

void run_rank_process(std::int64_t rank) {
  int type = 0;
  socklen_t size = sizeof(type);
  if (getsockopt(rank_channel_fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    throw MachineError(
        fmt::format("attest {} is started by attest, not by hand", rank_process_argument));
  }
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)fcntl(rank_channel_fd, F_SETFD, FD_CLOEXEC);
  const rlimit no_core{0, 0};
  (void)setrlimit(RLIMIT_CORE, &no_core);
  end_with_other_end_of(rank_channel_fd);
  RankChannel channel{OwnedFd(rank_channel_fd), rank};
  try {
    while (true) {
      try {
        channel.answer(answer_to(channel.next_task(), channel));
      } catch (const KernelError& error) {
        channel.fail_as_kernel(error.what());
        break;
      } catch (const std::exception& error) {
        channel.fail_as_machine(error.what());
        break;
      }
    }
  } catch (const RankChannel::ChannelClosed&) {
    std::_Exit(0);
  }
  // Its parent ends all ranks: none of their memory may go while another one reads it.
  std::this_thread::sleep_for(std::chrono::minutes(1));
  std::_Exit(0);
}

}  // namespace attest
