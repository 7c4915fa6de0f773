#include "core/base/on_threads.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace attest {

void on_threads(std::size_t count, const std::function<void()>& work) {
  std::mutex mutex;
  std::exception_ptr error;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back(guarded);
  }
  if (error) std::rethrow_exception(error);
}

void on_threads(std::size_t items, std::size_t jobs,
                const std::function<std::function<void(std::size_t)>()>& make) {
  std::atomic<std::size_t> next = 0;
  on_threads(std::min(std::max<std::size_t>(jobs, 1), items), [&] {
    try {
      const auto do_item = make();
      for (std::size_t i = next++; i < items; i = next++) do_item(i);
    } catch (...) {
      next = items;
      throw;
    }
  });
}

}  // namespace attest
