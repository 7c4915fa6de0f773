#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/run/device.hpp"
#include "gpu/simt/block_runner.hpp"
#include "gpu/simt/finding_log.hpp"
#include "gpu/simt/global_memory.hpp"
#include "gpu/simt/launch_tracer.hpp"

namespace attest::simt {

/// The SIMT executor as a device: global memory is an arena of host memory with a shadow, blocks
/// run on OS threads.
class SimtDevice final : public Device {
 public:
  /// `os_threads` >= 1: blocks of a launch that run at the same time. `first_serial` is the number
  /// of the first block; tests of the counter's end start it high. Throws InvalidInput,
  /// MachineError without address space.
  explicit SimtDevice(int os_threads = 1, std::uint64_t first_serial = first_block_serial);
  /// A device that traces launches instead of checking them; see tracer().
  explicit SimtDevice(TraceOptions options);
  ~SimtDevice() override;

  [[nodiscard]] std::byte* upload(const BufferImage& image) override;
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override {
    return memory_.add_unwritten("scratch", bytes);
  }
  void download(const std::byte* from, std::span<std::byte> to) override;
  void release(std::byte* buffer) noexcept override;
  void synchronize() override {}
  [[nodiscard]] double time_ms(const std::function<void()>& work) override;
  void seed_schedule(std::uint64_t seed) override;
  [[nodiscard]] std::vector<Finding> take_findings() override { return findings_.take(); }
  [[nodiscard]] std::string description() const override;

  /// Tracer of a device that counts; nullptr on one that checks.
  [[nodiscard]] const LaunchTracer* tracer() const { return tracer_.get(); }

  void run_grid(const KernelCall& call, dim3 grid, dim3 block, std::size_t shared_bytes,
                bool is_dependent = false);
  void run_clusters(const KernelCall& call, unsigned cluster, dim3 grid, dim3 block,
                    std::size_t shared_bytes);

 private:
  /// Begins any launch; false: nothing is to run.
  [[nodiscard]] bool begin_launch(Launch& launch, const KernelCall& call, dim3 grid, dim3 block,
                                  std::size_t shared_bytes, bool is_dependent);
  void start_serials_anew();

  FindingLog findings_;
  GlobalMemory memory_;
  std::vector<std::unique_ptr<BlockRunner>> runners_;          ///< one an OS thread
  std::vector<std::unique_ptr<BlockRunner>> cluster_runners_;  ///< one a block of a cluster
  std::unique_ptr<LaunchTracer> tracer_;
  std::atomic<std::uint64_t> next_serial_;
  std::uint64_t last_first_serial_ = first_block_serial;  ///< of the launch before
  std::uint64_t seed_ = 0, launches_since_seed_ = 0;
};

}  // namespace attest::simt
