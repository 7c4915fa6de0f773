#pragma once

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace attest {

/// Says one line on stderr when what it stands beside takes long, once: a person who waits knows
/// for what. Nothing when it is over before.
class SlowNotice {
 public:
  explicit SlowNotice(std::string line, double after_s = 2, std::FILE* stream = stderr);
  ~SlowNotice();
  SlowNotice(const SlowNotice&) = delete;
  SlowNotice& operator=(const SlowNotice&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace attest
