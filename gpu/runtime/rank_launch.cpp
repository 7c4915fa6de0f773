#include "gpu/runtime/rank_launch.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "core/attention/operation.hpp"
#include "core/base/error.hpp"
#include "core/base/hex.hpp"
#include "core/run/rank_processes.hpp"
#include "gpu/runtime/cuda_device.hpp"
#include "gpu/runtime/cuda_error.hpp"
#include "gpu/runtime/hardware_counters.hpp"
#include "gpu/runtime/shared_memory.hpp"

namespace attest {
inline namespace on_gpu {
namespace {

constexpr double seconds_of_a_launch = 40;  // processes started and contexts made among them

/// A launch as bytes, for a process of the same program.
struct RankTask {
  /// Addresses are places in the shared memory, plus one: null stays null. The problem's operation
  /// lies elsewhere in each process.
  Arguments arguments;
  std::ptrdiff_t operation = 0;  ///< its place among all_operations()
  RankTimes times;
  int callers_gpu = 0;
};
static_assert(std::is_trivially_copyable_v<RankTask>);

/// Processes of a thread's ranks, and the memory that they share with it.
struct RankHosts {
  RankProcesses processes{
      {.program = "/proc/self/exe", .arguments = {"attest", std::string(rank_process_argument)}},
      seconds_of_a_launch};
  SharedMemory memory;
};

std::vector<const void*> tensors_of(const Arguments& arguments) {
  std::vector<const void*> tensors;
  for (const InputArgument& input : arguments.inputs) {
    if (input.data != nullptr) tensors.push_back(input.data);
  }
  for (const OutputArgument& output : arguments.outputs) {
    if (output.data != nullptr) tensors.push_back(output.data);
  }
  return tensors;
}

/// Replaces the addresses of all tensors.
template <typename NewAddress>
void move_tensors(Arguments& arguments, const NewAddress& new_address) {
  for (InputArgument& input : arguments.inputs) {
    if (input.data != nullptr) input.data = new_address(input.data);
  }
  for (OutputArgument& output : arguments.outputs) {
    if (output.data != nullptr) output.data = new_address(output.data);
  }
}

/// The GPU of a rank's process: made once, for all of its launches.
CudaDevice& device_of_rank(std::int64_t rank, int callers_gpu) {
  static std::optional<CudaDevice> device;
  if (!device) {
    int gpus = 0;
    ATTEST_CUDA_CHECK(cudaGetDeviceCount(&gpus));
    device.emplace(static_cast<int>((callers_gpu + rank) % gpus));
  }
  return *device;
}

RankTask task_of(const std::string& text) {
  const auto bytes = from_hex(text.substr(0, text.find(' ')));
  RankTask task;
  if (!bytes || bytes->size() != sizeof(task)) {
    throw MachineError("a rank was sent something else than a launch");
  }
  std::memcpy(static_cast<void*>(&task), bytes->data(), sizeof(task));
  return task;
}

RankPlace place_of_rank(const std::string& task, RankChannel& channel) {
  channel.at("it made its CUDA context");
  return {channel, device_of_rank(channel.rank(), task_of(task).callers_gpu)};
}

}  // namespace

double ask_ranks(std::string_view work, const Arguments& arguments, Device& device,
                 const RankTimes& times) {
  static thread_local RankHosts hosts;
  SharedMemory& memory = hosts.memory;
  device.synchronize();
  memory.find_buffers(tensors_of(arguments));
  // The ranks have closed it: they do before they answer.
  if (!memory.has_room()) memory.make_room();
  memory.copy_in(device.native_stream());

  const auto& operations = all_operations();
  RankTask task{
      .arguments = arguments,
      .operation = std::ranges::find(operations, arguments.problem.operation) - operations.begin(),
      .times = times};
  ATTEST_CUDA_CHECK(cudaGetDevice(&task.callers_gpu));
  move_tensors(task.arguments, [&](const void* address) {
    return reinterpret_cast<void*>(memory.place_of(address) + 1);
  });
  const std::string text =
      fmt::format("{} {} {}", work, to_hex(std::as_bytes(std::span(&task, 1))), memory.exported());
  double slowest = 0;
  for (const std::string& answer : hosts.processes.ask(arguments.plan.ranks, text)) {
    slowest = std::max(slowest, std::stod(answer));
  }
  memory.copy_back(device.native_stream());
  return slowest;
}

RankVisit::RankVisit(const std::string& task, RankChannel& channel)
    : place_(place_of_rank(task, channel)) {
  channel.at("it opened the caller's memory");
  const RankTask asked = task_of(task);
  times_ = asked.times;
  arguments_ = asked.arguments;
  arguments_.problem.operation = all_operations().at(static_cast<std::size_t>(asked.operation));
  callers_.emplace_back(task.substr(std::min(task.find(' ') + 1, task.size())));
  move_tensors(arguments_, [&](const void* place) -> void* {
    return callers_.front().data() + (reinterpret_cast<std::uintptr_t>(place) - 1);
  });
  place_.device.poison_scratch();  // as the judge does with its own before every launch
}

std::string RankVisit::answer(double ms) {
  return fmt::format("{}", ms);
}

}  // namespace on_gpu
}  // namespace attest
