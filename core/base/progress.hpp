#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace attest {

/// State of a long job.
struct ProgressState {
  std::string label{};        ///< what runs now
  std::string unit = "case";  ///< of one
  std::int64_t done = 0;
  std::int64_t total = 0;    ///< 0: not known
  double seconds = 0;        ///< since the start
  double seconds_limit = 0;  ///< the job ends after this long even if fewer were done; 0: no limit
};

/// Part of the job that is over, in [0, 1]: by count or by time, whichever is further. 0 when
/// neither end is known.
[[nodiscard]] double fraction_done(const ProgressState& state);
/// One line of at most `width` columns for a terminal: bar, count, rate, time left, label. The
/// label gives way first.
[[nodiscard]] std::string format_bar(const ProgressState& state, int width);
/// One line for a pipe or a log, the same facts without the bar.
[[nodiscard]] std::string format_line(const ProgressState& state);
/// `7 s`, `2 min 05 s`, `3 h 20 min`.
[[nodiscard]] std::string format_duration(double seconds);

/// Stream and clock of a progress display; tests replace them.
struct ProgressOutput {
  std::FILE* stream = stderr;
  bool is_terminal = false;
  std::function<double()> now;   ///< seconds, monotonic
  std::function<int()> columns;  ///< width of the terminal

  /// stderr, the steady clock, and what isatty says.
  [[nodiscard]] static ProgressOutput standard();
};

/// Shows a long job on stderr: a bar redrawn at most 10 times a second on a terminal, otherwise a
/// plain line every 5 seconds. Safe to share between threads.
class Progress {
 public:
  /// `start` gives unit, total and limit.
  explicit Progress(ProgressState start, ProgressOutput output = ProgressOutput::standard());
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Calls finish().
  ~Progress();

  void set_label(std::string label);
  /// Sets the length of a job that learns it on its way.
  void set_total(std::int64_t total);
  void advance(std::int64_t count = 1);
  /// Prints a line above the bar: a failure must not wait for the end.
  void print(std::string_view line);
  /// Prints the final count, time and rate once; later calls of any member show nothing.
  void finish();
  [[nodiscard]] ProgressState state() const;

 private:
  void show_if_due();
  void show();
  void clear_bar();

  mutable std::mutex mutex_;
  ProgressState state_;
  ProgressOutput output_;
  double start_;
  double next_show_;
  bool has_bar_ = false;
  bool is_finished_ = false;
};

}  // namespace attest
