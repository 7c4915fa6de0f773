#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/run/device.hpp"
#include "experiments/study/group_timer.hpp"
#include "experiments/study/schedule.hpp"
#include "experiments/timing/gate.hpp"

namespace attest {

/// Makes devices when they are first needed, of one thread.
class DevicesOfThread {
 public:
  explicit DevicesOfThread(std::function<std::unique_ptr<Device>(Executor)> make)
      : make_(std::move(make)) {}
  [[nodiscard]] Device& operator[](Executor executor) {
    auto& device = devices_[executor];
    if (!device) device = make_(executor);
    return *device;
  }

 private:
  std::function<std::unique_ptr<Device>(Executor)> make_;
  std::map<Executor, std::unique_ptr<Device>> devices_;
};

/// What an executor measures of a contender: no time; whether it is right and, on request, its
/// errors, on a problem that is short enough.
struct OnExecutor {
  Measured measured;            ///< errors, or why it was refused
  std::string error_problem{};  ///< on which they were measured
};
[[nodiscard]] OnExecutor measure_on_executor(const Contender& contender, Gate& gate,
                                             const std::vector<ErrorMetric>& errors,
                                             DevicesOfThread& devices);

}  // namespace attest
