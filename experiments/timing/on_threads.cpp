#include "experiments/timing/on_threads.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace attest {

void on_threads(std::size_t items, std::size_t jobs,
                const std::function<std::function<void(std::size_t)>()>& make) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      const auto do_item = make();
      for (std::size_t i = next++; i < items; i = next++) do_item(i);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (!error) error = std::current_exception();
      next = items;
    }
  };
  {
    std::vector<std::jthread> threads;
    const std::size_t count = std::min(std::max<std::size_t>(jobs, 1), items);
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back(work);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace attest
