#include "core/base/progress.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace attest {
namespace {

ProgressState half_done() {
  return {.label = "flash2 on simt", .done = 750, .total = 1500, .seconds = 15};
}

/// A Progress with a clock we turn by hand, writing to a file we read back.
struct Fixture {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::tmpfile(), &std::fclose};
  double time = 100;

  ProgressOutput output(bool is_terminal) {
    return {.stream = file.get(),
            .is_terminal = is_terminal,
            .now = [this] { return time; },
            .columns = [] { return 80; }};
  }
  std::string text() {
    std::rewind(file.get());
    std::string result;
    for (int c = std::fgetc(file.get()); c != EOF; c = std::fgetc(file.get()))
      result += static_cast<char>(c);
    return result;
  }
};

std::int64_t count(const std::string& text, const std::string& part) {
  std::int64_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(ProgressFormat, a_bar_shows_count_rate_time_left_and_label) {
  EXPECT_EQ(format_bar(half_done(), 120),
            "[############............] 750 of 1,500 cases, 50 cases/s, 15 s left  flash2 on simt");
}

TEST(ProgressFormat, a_line_shows_the_same_facts) {
  EXPECT_EQ(format_line(half_done()), "750 of 1,500 cases, 50 cases/s, 15 s left  flash2 on simt");
}

TEST(ProgressFormat, a_line_never_exceeds_the_width_and_the_label_gives_way_first) {
  for (int width = 0; width <= 120; ++width) {
    const std::string line = format_bar(half_done(), width);
    EXPECT_LE(line.size(), static_cast<std::size_t>(width));
    if (width >= 68) {
      EXPECT_NE(line.find("15 s left"), std::string::npos) << width;
    }
  }
  EXPECT_TRUE(format_bar(half_done(), 80).ends_with("...")) << format_bar(half_done(), 80);
}

TEST(ProgressFormat, at_the_start_no_rate_and_no_time_left_are_invented) {
  EXPECT_EQ(format_line({.total = 10}), "0 of 10 cases");
  EXPECT_EQ(format_line({.total = 10, .seconds = 3}), "0 of 10 cases");
}

TEST(ProgressFormat, the_bar_is_full_only_when_the_job_is_over) {
  EXPECT_NE(format_bar({.done = 9999, .total = 10000, .seconds = 1}, 80).find('.'),
            std::string::npos);
  EXPECT_TRUE(format_bar({.done = 10000, .total = 10000, .seconds = 1}, 80)
                  .starts_with("[########################] "));
}

TEST(ProgressFormat, a_time_limit_counts_when_it_is_the_nearer_end) {
  const ProgressState state{.done = 10, .total = 1000, .seconds = 45, .seconds_limit = 60};
  EXPECT_EQ(fraction_done(state), 0.75);
  EXPECT_NE(format_line(state).find("15 s left"), std::string::npos) << format_line(state);
  EXPECT_EQ(fraction_done({.done = 20, .total = 10}), 1) << "more than planned is still the end";
  EXPECT_EQ(fraction_done({.done = 20, .seconds = 9}), 0) << "no end is known";
}

TEST(ProgressFormat, durations_use_the_two_units_that_matter) {
  EXPECT_EQ(format_duration(0), "0 s");
  EXPECT_EQ(format_duration(59.4), "59 s");
  EXPECT_EQ(format_duration(59.6), "1 min 00 s");
  EXPECT_EQ(format_duration(125), "2 min 05 s");
  EXPECT_EQ(format_duration(12000), "3 h 20 min");
}

TEST(Progress, a_terminal_is_redrawn_at_most_ten_times_a_second) {
  Fixture fixture;
  {
    Progress progress({.total = 1000}, fixture.output(true));
    for (int i = 0; i < 1000; ++i) {  // two seconds
      progress.advance();
      fixture.time += 0.002;
    }
  }
  const std::string text = fixture.text();
  const std::int64_t draws = count(text, " of 1,000 cases");
  EXPECT_LE(draws, 21);  // at 0 s and every 0.1 s up to 2 s
  EXPECT_GE(draws, 19);
  EXPECT_EQ(count(text, "\n"), 1) << "one line at the end, the rest in place";
}

TEST(Progress, a_total_that_is_known_later_is_shown_from_then_on) {
  Fixture fixture;
  Progress progress({}, fixture.output(false));
  fixture.time += 6;
  progress.advance();
  progress.set_total(4);
  fixture.time += 6;
  progress.advance();
  EXPECT_EQ(count(fixture.text(), " of 4 cases"), 1);
  EXPECT_EQ(count(fixture.text(), "12 s left"), 1);
}

TEST(Progress, a_job_that_did_nothing_says_nothing_at_its_end) {
  Fixture fixture;
  { const Progress progress({.total = 10}, fixture.output(false)); }
  EXPECT_EQ(fixture.text(), "");
}

TEST(Progress, a_pipe_gets_plain_lines_every_few_seconds_and_one_at_the_end) {
  Fixture fixture;
  {
    Progress progress({.total = 240}, fixture.output(false));
    for (int i = 0; i < 240; ++i) {  // twelve seconds
      fixture.time += 0.05;
      progress.advance();
    }
  }
  const std::string text = fixture.text();
  EXPECT_EQ(count(text, "\n"), 3) << text;  // about 5 s, 10 s, end
  EXPECT_EQ(count(text, "\x1b"), 0) << "no terminal codes in a log";
  EXPECT_TRUE(text.ends_with("240 cases in 12 s, 20 cases/s\n")) << text;
}

TEST(ProgressFormat, one_is_no_plural) {
  EXPECT_EQ(format_line({.done = 1, .seconds = 2}), "1 case, 0.5 cases/s");
  EXPECT_EQ(format_line({.unit = "row", .done = 0, .total = 1}), "0 of 1 row");
  EXPECT_EQ(format_line({.unit = "row", .done = 1, .total = 2}), "1 of 2 rows");
}

TEST(Progress, one_is_no_plural_at_the_end) {
  Fixture fixture;
  {
    Progress progress({.unit = "point"}, fixture.output(false));
    fixture.time += 2;
    progress.advance();
  }
  EXPECT_EQ(fixture.text(), "1 point in 2 s, 0.5 points/s\n");
}

TEST(Progress, a_printed_line_stands_alone_and_the_bar_returns_below_it) {
  Fixture fixture;
  Progress progress({.total = 10}, fixture.output(true));
  progress.advance();
  progress.print("FAILED: within the bound");
  const std::string text = fixture.text();
  EXPECT_NE(text.find("\r\x1b[KFAILED: within the bound\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("1 of 10 cases")) << text;
}

TEST(Progress, finishing_twice_prints_once_and_nothing_follows) {
  Fixture fixture;
  Progress progress({.total = 10}, fixture.output(true));
  progress.finish();
  const std::string text = fixture.text();
  fixture.time += 60;
  progress.advance();
  progress.finish();
  EXPECT_EQ(fixture.text(), text);
}

TEST(Progress, threads_take_turns_and_no_count_is_lost) {
  constexpr int thread_count = 4;
  constexpr int steps = 1000;
  Fixture fixture;
  ProgressOutput output = fixture.output(false);
  // The clock is read inside advance(): a thread that waits there meets every other one that may
  // come in.
  std::atomic<int> inside = 0;
  std::atomic<bool> have_met = false;
  output.now = [&] {
    if (++inside > 1) have_met = true;
    std::this_thread::yield();
    --inside;
    return 0.0;
  };
  Progress progress({.total = thread_count * steps}, output);
  std::latch start(thread_count);
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t)
    threads.emplace_back([&] {
      start.arrive_and_wait();
      for (int i = 0; i < steps; ++i) progress.advance();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(have_met);
  EXPECT_EQ(progress.state().done, thread_count * steps);
}

}  // namespace
}  // namespace attest
