#include "gpu/simt/simt_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "core/base/counted.hpp"
#include "core/base/error.hpp"
#include "core/inputs/random.hpp"
#include "core/run/registry.hpp"
#include "gpu/simt/block_cluster.hpp"
#include "gpu/simt/cluster.hpp"
#include "gpu/simt/processor_fault.hpp"
#include "gpu/simt/shared_memory.hpp"
#include "gpu/simt/traces_launches.hpp"

namespace attest::simt {
namespace {

void check_sizes(dim3 grid, dim3 block, std::size_t shared_bytes) {
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads < 1 || block.x > 1024 || block.y > 1024 || block.z > 64 || threads > 1024)
    throw MachineError(
        fmt::format("a block of {} x {} x {} threads cannot be launched: at most 1024 x 1024 x 64 "
                    "and 1,024 in all",
                    block.x, block.y, block.z));
  if (grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.x > 0x7fffffffU || grid.y > 65535 ||
      grid.z > 65535)
    throw MachineError(fmt::format(
        "a grid of {} x {} x {} blocks cannot be launched: at most 2147483647 x 65535 x 65535",
        grid.x, grid.y, grid.z));
  if (shared_bytes > max_shared_bytes)
    throw MachineError(
        fmt::format("{} bytes of shared memory a block cannot be launched: at most {} (227 KiB)",
                    shared_bytes, max_shared_bytes));
}

/// Visits every block once: block = (start + i * stride) mod count with a stride prime to count.
struct BlockOrder {
  std::uint64_t start, stride, count;

  BlockOrder(std::uint64_t seed, std::uint64_t blocks)
      : start(random_bits(seed, 0, 0) % blocks),
        stride(random_bits(seed, 0, 1) % blocks),
        count(blocks) {
    while (std::gcd(stride, count) != 1) stride = (stride + 1) % count;
  }
  [[nodiscard]] std::uint64_t operator()(std::uint64_t i) const {
    // Blocks of one launch fit into 27 bits (serials), so the product fits.
    return (start + i * stride) % count;
  }
};

void run_blocks(BlockRunner& runner, Launch& launch, const BlockOrder& order,
                std::atomic<std::uint64_t>& next) {
  runner.begin(launch);
  for (;;) {
    const std::uint64_t i = next.fetch_add(1, std::memory_order_relaxed);
    if (i >= order.count || launch.abandoned.load(std::memory_order_relaxed)) break;
    const std::uint64_t block = order(i);
    if (launch.tracer != nullptr && !launch.tracer->takes(block)) continue;
    if (!runner.run_block(block)) launch.abandoned.store(true, std::memory_order_relaxed);
  }
  runner.end();
}

const DeviceRegistration registration{
    DeviceFactory{Executor::simt, [] { return std::string(); },
                  []() -> std::unique_ptr<Device> { return std::make_unique<SimtDevice>(); }}};

}  // namespace

SimtDevice::SimtDevice(int os_threads, std::uint64_t first_serial) : next_serial_(first_serial) {
  if (os_threads < 1)
    throw InvalidInput(
        fmt::format("SIMT executor: {} OS threads; at least 1 is needed", os_threads));
  catch_processor_faults();
  for (int i = 0; i < os_threads; ++i) runners_.push_back(std::make_unique<BlockRunner>());
}

SimtDevice::SimtDevice(TraceOptions options) : SimtDevice() {
  tracer_ = std::make_unique<LaunchTracer>(std::move(options));
}

SimtDevice::~SimtDevice() = default;

std::byte* SimtDevice::upload(const BufferImage& image) {
  return memory_.add(image);
}

void SimtDevice::download(const std::byte* from, std::span<std::byte> to) {
  std::copy_n(from, to.size(), to.begin());
}

void SimtDevice::release(std::byte* buffer) noexcept {
  memory_.remove(buffer);
}

double SimtDevice::time_ms(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

void SimtDevice::seed_schedule(std::uint64_t seed) {
  seed_ = seed;
  launches_since_seed_ = 0;
}

std::string SimtDevice::description() const {
  return fmt::format("SIMT executor on {}, {} GiB of global memory with a shadow",
                     counted(runners_.size(), "OS thread"), memory_.memory().size_bytes >> 30);
}

void SimtDevice::start_serials_anew() {
  memory_.forget_blocks();
  for (const auto* all : {&runners_, &cluster_runners_})
    for (const auto& runner : *all) runner->forget_shared_memory();
  next_serial_ = first_block_serial;
  last_first_serial_ = first_block_serial;
}

bool SimtDevice::begin_launch(Launch& launch, const KernelCall& call, dim3 grid, dim3 block,
                              std::size_t shared_bytes, bool is_dependent) {
  check_sizes(grid, block, shared_bytes);
  if (tracer_ != nullptr) {
    tracer_->begin_launch(call.address, grid, block, shared_bytes);
    if (tracer_->is_dry()) return false;
  }
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  if (blocks > serial_limit / 2)
    throw MachineError(fmt::format("{} blocks are too many for the SIMT executor: at most {}",
                                   blocks, serial_limit / 2));
  // Half of what is left is for blocks that need a second serial: a block would have to pass a
  // trillion barriers.
  if (next_serial_ + blocks > serial_limit * 3 / 4) start_serials_anew();

  launch.call = call;
  launch.grid = grid;
  launch.block = block;
  launch.shared_bytes = shared_bytes;
  launch.block_count = blocks;
  launch.threads_per_block = block.x * block.y * block.z;
  launch.seed = random_bits(seed_, 1, launches_since_seed_++);
  launch.first_serial = next_serial_.fetch_add(blocks);
  launch.predecessor_serial = is_dependent ? last_first_serial_ : launch.first_serial;
  last_first_serial_ = launch.first_serial;
  launch.memory = &memory_;
  launch.findings = &findings_;
  launch.tracer = tracer_.get();
  launch.next_serial = &next_serial_;
  return true;
}

void SimtDevice::run_grid(const KernelCall& call, dim3 grid, dim3 block, std::size_t shared_bytes,
                          bool is_dependent) {
  Launch launch;
  if (!begin_launch(launch, call, grid, block, shared_bytes, is_dependent)) return;
  const std::uint64_t blocks = launch.block_count;
  const BlockOrder order(launch.seed, blocks);
  std::atomic<std::uint64_t> next = 0;
  const std::uint64_t helpers = std::min<std::uint64_t>(runners_.size(), blocks) - 1;
  std::vector<std::exception_ptr> errors(helpers);
  std::vector<std::thread> os_threads;
  for (std::uint64_t h = 0; h < helpers; ++h)
    os_threads.emplace_back([&, h] {
      try {
        run_blocks(*runners_[h + 1], launch, order, next);
      } catch (...) {
        errors[h] = std::current_exception();
      }
    });
  run_blocks(*runners_[0], launch, order, next);
  for (std::thread& thread : os_threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  if (tracer_ != nullptr) tracer_->end_launch(memory_);
}

void SimtDevice::run_clusters(const KernelCall& call, unsigned cluster, dim3 grid, dim3 block,
                              std::size_t shared_bytes) {
  if (cluster < 1 || cluster > most_in_cluster || grid.x % cluster != 0)
    throw MachineError(
        fmt::format("a grid of {} blocks in x cannot be launched in clusters of {}: at most {} "
                    "blocks a cluster, and whole clusters",
                    grid.x, cluster, most_in_cluster));
  Launch launch;
  if (!begin_launch(launch, call, grid, block, shared_bytes, false)) return;
  if (tracer_ != nullptr)
    throw InvalidInput(
        "a launch in clusters cannot be traced: a trace follows one block at a time");
  while (cluster_runners_.size() < cluster)
    cluster_runners_.push_back(std::make_unique<BlockRunner>());
  std::vector<BlockRunner*> blocks;
  for (unsigned i = 0; i < cluster; ++i) blocks.push_back(cluster_runners_[i].get());
  const BlockOrder order(launch.seed, launch.block_count / cluster);
  for (std::uint64_t i = 0; i < order.count; ++i) {
    if (!BlockCluster(blocks, launch, order(i) * cluster).run()) break;
  }
}

namespace {

SimtDevice& simt_of(Device& device) {
  auto* simt = dynamic_cast<SimtDevice*>(&device);
  if (simt == nullptr)
    throw std::logic_error("a kernel built for the SIMT executor was launched on another device");
  return *simt;
}

}  // namespace

void run_grid(const KernelCall& call, dim3 grid, dim3 block, std::size_t shared_bytes,
              Device& device, bool is_dependent) {
  simt_of(device).run_grid(call, grid, block, shared_bytes, is_dependent);
}

std::int64_t resident_blocks_of(const void* kernel, dim3 block, std::size_t shared_bytes,
                                Device& device) {
  constexpr std::int64_t few = 3;
  const LaunchTracer* const tracer = simt_of(device).tracer();
  return tracer == nullptr ? few
                           : tracer->resident_blocks(kernel, block, shared_bytes).value_or(few);
}

bool traces_launches(Device& device) {
  return simt_of(device).tracer() != nullptr;
}

void run_clusters(const KernelCall& call, unsigned cluster, dim3 grid, dim3 block,
                  std::size_t shared_bytes, Device& device) {
  simt_of(device).run_clusters(call, cluster, grid, block, shared_bytes);
}

}  // namespace attest::simt
