#pragma once

#include <cstddef>
#include <functional>

namespace attest {

/// Calls work() once on each of `count` threads, of which this is none, and waits for all. The
/// first exception is thrown again when the last has ended.
void on_threads(std::size_t count, const std::function<void()>& work);

/// Runs items 0 .. items - 1 on at most `jobs` threads. `make` is called once on each thread and
/// returns the function that runs an item there. The first exception ends the rest and is thrown
/// again.
void on_threads(std::size_t items, std::size_t jobs,
                const std::function<std::function<void(std::size_t)>()>& make);

}  // namespace attest
