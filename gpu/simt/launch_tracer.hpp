#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/run/launch_trace.hpp"
#include "gpu/simt/request_builder.hpp"
#include "gpu/simt/running_thread.hpp"

namespace attest::simt {

class GlobalMemory;

/// Tests if the block with this linear number is run. Empty: all are.
using BlockSample = std::function<bool(std::uint64_t block)>;

struct TraceOptions {
  /// Launches are noted and nothing runs: their arguments may be null.
  bool is_dry = false;
  BlockSample sample = {};
  ResidentBlocks resident_blocks = {};
};

/// Counter of accesses, by which an SimtDevice counts them instead of checking them. One OS thread.
class LaunchTracer {
 public:
  explicit LaunchTracer(TraceOptions options) : options_(std::move(options)) {}

  [[nodiscard]] bool is_dry() const { return options_.is_dry; }
  [[nodiscard]] bool takes(std::uint64_t block) const {
    return !options_.sample || options_.sample(block);
  }

  /// Number of blocks that run at once by the options; nothing: they do not say it.
  [[nodiscard]] std::optional<std::int64_t> resident_blocks(const void* kernel, dim3 block,
                                                            std::size_t shared_bytes) const;

  /// `kernel` is its address. Every launch is noted, whether it runs or not.
  void begin_launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes);
  void begin_block(const ShadowedMemory& global, const ShadowedMemory& dynamic_shared,
                   const ShadowedMemory& static_shared);
  void barrier();
  /// Lanes of a warp met; `is_whole`: all that have not exited.
  void warp_operation(unsigned warp, unsigned lanes, bool is_whole);
  void access(unsigned thread, std::uintptr_t address, std::size_t size, AccessKind kind,
              ProgramPoint point);
  /// A row of a box that a copy by TMA reads or writes.
  void copied_row(MemorySpace space, std::uintptr_t address, std::size_t size, AccessKind kind,
                  ProgramPoint point);
  void end_block(std::int64_t fmas);
  /// Names the memory that was touched while its buffers still exist.
  void end_launch(const GlobalMemory& memory);

  /// Configurations of all launches, in their order.
  [[nodiscard]] const std::vector<LaunchConfiguration>& launches() const { return launches_; }
  /// Traces of all kernels, in order of each kernel's first launch.
  [[nodiscard]] std::vector<KernelTrace> traces() const;

 private:
  struct Kernel {
    const void* address = nullptr;
    KernelTrace trace;  ///< without sites
    RequestBuilder requests;
    struct Place {
      std::string memory;
      ByteRange range;
    };
    std::vector<Place> places;  ///< of requests.sites()
  };
  void move_to(unsigned warp);
  void flush();
  [[nodiscard]] Kernel::Place place_of(const RequestBuilder::Site& site,
                                       const GlobalMemory& memory) const;

  TraceOptions options_;
  std::vector<LaunchConfiguration> launches_;
  std::vector<Kernel> kernels_;
  Kernel* kernel_ = nullptr;  ///< that runs
  ShadowedMemory global_, dynamic_shared_, static_shared_;
  unsigned thread_count_ = 0;
  unsigned warp_ = 0;   ///< whose requests are open
  unsigned alive_ = 0;  ///< its lanes that may take part in them
};

}  // namespace attest::simt
