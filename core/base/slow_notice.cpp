#include "core/base/slow_notice.hpp"

#include <chrono>
#include <utility>

namespace attest {

SlowNotice::SlowNotice(std::string line, double after_s, std::FILE* stream)
    : thread_([this, text = std::move(line) + '\n', after_s, stream] {
        std::unique_lock lock(mutex_);
        if (over_.wait_for(lock, std::chrono::duration<double>(after_s), [&] { return is_over_; }))
          return;
        std::fputs(text.c_str(), stream);
        std::fflush(stream);
      }) {}

SlowNotice::~SlowNotice() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  thread_.join();
}

}  // namespace attest
