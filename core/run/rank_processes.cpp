#include "core/run/rank_processes.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/run/rank_process.hpp"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

// A message is a few hundred bytes; one that goes on for ever must not fill our memory.
constexpr std::size_t longest_line = std::size_t{1} << 20;
constexpr std::size_t longest_step = 200;

/// Sending gives up in time, where the other end does not read.
void limit_sending(int socket, double seconds) {
  constexpr double microseconds = 1e6;
  const auto whole = static_cast<time_t>(seconds);
  const timeval limit{
      .tv_sec = whole,
      .tv_usec = static_cast<suseconds_t>((seconds - static_cast<double>(whole)) * microseconds)};
  (void)setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

std::string name_of(std::size_t rank, std::size_t ranks) {
  return fmt::format("rank {} of {}", rank, ranks);
}

}  // namespace

std::vector<std::string> RankProcesses::ask(std::int64_t ranks, std::string_view task) {
  try {
    start(ranks);
    return ask_started(ranks, task);
  } catch (...) {
    ranks_.clear();
    throw;
  }
}

void RankProcesses::start(std::int64_t ranks) {
  for (std::size_t rank = ranks_.size(); rank < static_cast<std::size_t>(ranks); ++rank) {
    std::vector<std::string> arguments = start_.arguments;
    arguments.push_back(std::to_string(rank));
    try {
      ranks_.push_back({.process = Subprocess({.program = start_.program,
                                               .arguments = std::move(arguments),
                                               .channel_there = {rank_channel_fd}}),
                        .step = "it started"});
      limit_sending(ranks_.back().process.channel(), seconds_);
    } catch (const std::system_error& error) {
      throw MachineError(fmt::format("cannot start the process of a rank: {}", error.what()));
    }
  }
}

std::vector<std::string> RankProcesses::ask_started(std::int64_t ranks, std::string_view task) {
  const auto count = static_cast<std::size_t>(ranks);
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds_);
  ++task_;
  for (std::size_t rank = 0; rank < count; ++rank) {
    ranks_[rank].has_answered = false;
    // Failing to send means that it died since its last answer; reading finds out how.
    (void)ranks_[rank].process.send_line(fmt::format("task {} {} {}", task_, ranks, task));
  }
  while (true) {
    std::vector<pollfd> polled;
    bool has_all = true;
    for (std::size_t rank = 0; rank < count; ++rank) {
      polled.push_back({.fd = ranks_[rank].process.channel(), .events = POLLIN, .revents = 0});
      has_all = has_all && ranks_[rank].has_answered;
    }
    if (has_all) break;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    const bool is_late = left.count() <= 0;
    (void)poll(polled.data(), polled.size(), is_late ? 0 : static_cast<int>(left.count()) + 1);
    for (std::size_t rank = 0; rank < count; ++rank) {
      if (polled[rank].revents == 0) continue;
      if (!ranks_[rank].process.receive()) fail_ended(rank, count);
      take_lines(rank, count);
    }
    // Whoever talks on and on is late all the same.
    std::string words;
    for (std::size_t rank = 0; is_late && rank < count; ++rank) {
      if (ranks_[rank].has_answered) continue;
      words +=
          fmt::format("{}{}{}", words.empty() ? "" : "; ", name_of(rank, count), while_at(rank));
    }
    if (!words.empty()) {
      throw KernelError(fmt::format("no answer within {:g} s of {}", seconds_, words));
    }
  }
  std::vector<std::string> answers;
  for (std::size_t rank = 0; rank < count; ++rank) {
    answers.push_back(std::move(ranks_[rank].answer));
    ranks_[rank].step = "it had nothing to do";
  }
  return answers;
}

void RankProcesses::take_lines(std::size_t rank, std::size_t ranks) {
  while (const auto line = ranks_[rank].process.take_line()) take_line(*line, rank, ranks);
  if (ranks_[rank].process.unread_bytes() > longest_line) {
    throw KernelError(name_of(rank, ranks) + " sent something else than a message");
  }
}

void RankProcesses::take_line(const std::string& line, std::size_t rank, std::size_t ranks) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string kind = line.substr(0, end), text = line.substr(std::min(end + 1, line.size()));
  if (kind == "step") {
    ranks_[rank].step = printable(text, longest_step);
  } else if (kind == "tell") {
    for (std::size_t other = 0; other < ranks; ++other) {
      if (other == rank) continue;
      if (ranks_[other].process.send_line(fmt::format("from {} {}", rank, text))) continue;
      if (errno != EAGAIN) continue;  // it is gone, which is found where its own channel ends
      throw KernelError(fmt::format("{} does not read what others tell it{}", name_of(other, ranks),
                                    while_at(other)));
    }
  } else if (const std::string number = std::to_string(task_) + ' ';
             kind == "answer" && text.starts_with(number) && !ranks_[rank].has_answered) {
    ranks_[rank].answer = text.substr(number.size());
    ranks_[rank].has_answered = true;
  } else if (kind == "kernel_error") {
    throw KernelError(fmt::format("{}: {}{}", name_of(rank, ranks), text, while_at(rank)));
  } else if (kind == "machine_error") {
    throw MachineError(fmt::format("{}: {}{}", name_of(rank, ranks), text, while_at(rank)));
  } else {
    throw KernelError(
        fmt::format("{} said '{}', which is no message", name_of(rank, ranks), printable(kind)));
  }
}

void RankProcesses::fail_ended(std::size_t rank, std::size_t ranks) {
  // Its channel is closed: it is dead or dying, unless somebody in it closed the channel.
  std::optional<int> status;
  for (int i = 0; i < 200 && !status; ++i) {
    status = ranks_[rank].process.status();
    if (!status) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  throw KernelError(fmt::format("{} {}{}", name_of(rank, ranks),
                                status ? how_it_ended(*status) : "closed its channel",
                                while_at(rank)));
}

std::string RankProcesses::while_at(std::size_t rank) const {
  return ranks_[rank].step.empty() ? "" : fmt::format(", while {}", ranks_[rank].step);
}

}  // namespace attest
