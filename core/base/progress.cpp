#include "core/base/progress.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/base/counted.hpp"

namespace attest {
namespace {

constexpr double bar_interval_s = 0.1;
constexpr double line_interval_s = 5.0;
constexpr int bar_cells = 24;
constexpr const char* clear_line = "\r\x1b[K";

/// `1,234,567`
std::string grouped(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  const std::ptrdiff_t first = value < 0 ? 1 : 0;
  for (std::ptrdiff_t i = std::ssize(digits) - 3; i > first; i -= 3)
    digits.insert(static_cast<std::size_t>(i), 1, ',');
  return digits;
}

double rate_of(const ProgressState& state) {
  return state.seconds > 0 ? static_cast<double>(state.done) / state.seconds : 0;
}

/// `12 of 100 cases, 3.4 cases/s, 26 s left`
std::string facts(const ProgressState& state) {
  std::string text = grouped(state.done);
  if (state.total > 0) text += " of " + grouped(state.total);
  text += ' ' + noun_behind(state.total > 0 ? state.total : state.done, state.unit);
  const double rate = rate_of(state);
  if (rate > 0) text += fmt::format(", {:.{}f} {}s/s", rate, rate < 10 ? 1 : 0, state.unit);
  const double fraction = fraction_done(state);
  // Both ends, count and time, are extrapolated by the same rule: time so far over the part that is
  // over.
  if (fraction > 0 && state.seconds > 0)
    text += fmt::format(", {} left", format_duration(state.seconds * (1 - fraction) / fraction));
  return text;
}

}  // namespace

double fraction_done(const ProgressState& state) {
  const double by_count =
      state.total > 0 ? static_cast<double>(state.done) / static_cast<double>(state.total) : 0;
  const double by_time = state.seconds_limit > 0 ? state.seconds / state.seconds_limit : 0;
  return std::clamp(std::max(by_count, by_time), 0.0, 1.0);
}

std::string format_duration(double seconds) {
  const auto s = static_cast<std::int64_t>(std::llround(std::max(seconds, 0.0)));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s % 3600 / 60);
}

std::string format_bar(const ProgressState& state, int width) {
  const auto columns = static_cast<std::size_t>(std::max(width, 0));
  std::string line;
  if (state.total > 0 || state.seconds_limit > 0) {
    // Rounded down: a full bar means that the job is over.
    const int filled = static_cast<int>(fraction_done(state) * bar_cells);
    line = fmt::format("[{:#<{}}{:.<{}}] ", "", filled, "", bar_cells - filled);
  }
  line += facts(state);
  if (!state.label.empty()) {
    std::string with_label = line + "  " + state.label;
    if (with_label.size() <= columns) return with_label;
    // A few letters of a label tell nothing; then it is left out.
    constexpr std::size_t shortest = 8;
    if (columns >= line.size() + 2 + shortest) return with_label.substr(0, columns - 3) + "...";
  }
  return line.substr(0, columns);
}

std::string format_line(const ProgressState& state) {
  return state.label.empty() ? facts(state) : facts(state) + "  " + state.label;
}

ProgressOutput ProgressOutput::standard() {
  return {.stream = stderr,
          .is_terminal = ::isatty(STDERR_FILENO) == 1,
          .now =
              [] {
                return std::chrono::duration<double>(
                           std::chrono::steady_clock::now().time_since_epoch())
                    .count();
              },
          .columns =
              [] {
                winsize size{};
                const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
                return is_known && size.ws_col > 0 ? static_cast<int>(size.ws_col) : 80;
              }};
}

Progress::Progress(ProgressState start, ProgressOutput output)
    : state_(std::move(start)), output_(std::move(output)), start_(output_.now()) {
  // A log line at second 0 says nothing; a bar at second 0 says that the job has begun.
  next_show_ = start_ + (output_.is_terminal ? 0 : line_interval_s);
}

Progress::~Progress() {
  finish();
}

void Progress::set_label(std::string label) {
  const std::lock_guard lock(mutex_);
  state_.label = std::move(label);
  show_if_due();
}

void Progress::set_total(std::int64_t total) {
  const std::lock_guard lock(mutex_);
  state_.total = total;
  show_if_due();
}

void Progress::advance(std::int64_t count) {
  const std::lock_guard lock(mutex_);
  state_.done += count;
  show_if_due();
}

void Progress::print(std::string_view line) {
  const std::lock_guard lock(mutex_);
  clear_bar();
  std::fputs(fmt::format("{}\n", line).c_str(), output_.stream);
  if (output_.is_terminal && !is_finished_) show();
  std::fflush(output_.stream);
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  if (is_finished_) return;
  is_finished_ = true;
  state_.seconds = output_.now() - start_;
  clear_bar();
  if (state_.done == 0) return;  // stopped before it began, by bad input say
  const double rate = rate_of(state_);
  std::fputs(fmt::format("{} {} in {}, {:.{}f} {}s/s\n", grouped(state_.done),
                         noun_behind(state_.done, state_.unit), format_duration(state_.seconds),
                         rate, rate < 10 ? 1 : 0, state_.unit)
                 .c_str(),
             output_.stream);
  std::fflush(output_.stream);
}

ProgressState Progress::state() const {
  const std::lock_guard lock(mutex_);
  ProgressState state = state_;
  if (!is_finished_) state.seconds = output_.now() - start_;
  return state;
}

void Progress::show_if_due() {
  if (is_finished_) return;
  const double now = output_.now();
  if (now < next_show_) return;
  next_show_ = now + (output_.is_terminal ? bar_interval_s : line_interval_s);
  show();
}

void Progress::show() {
  state_.seconds = output_.now() - start_;
  if (output_.is_terminal) {
    // One column short: a full last column makes some terminals wrap.
    std::fputs((clear_line + format_bar(state_, output_.columns() - 1)).c_str(), output_.stream);
    has_bar_ = true;
  } else {
    std::fputs((format_line(state_) + '\n').c_str(), output_.stream);
  }
  std::fflush(output_.stream);
}

void Progress::clear_bar() {
  if (has_bar_) std::fputs(clear_line, output_.stream);
  has_bar_ = false;
}

}  // namespace attest
