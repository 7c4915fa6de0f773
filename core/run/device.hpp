#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/records/measurement.hpp"

namespace attest {

/// Kind of device that runs a kernel.
enum class Executor : int { cpu, simt, gpu };
[[nodiscard]] std::string_view name_of(Executor executor);
/// Executor of a name; nothing for an unknown name.
[[nodiscard]] std::optional<Executor> executor_from_name(std::string_view name);

struct ByteRange {
  std::size_t begin = 0, end = 0;
};

/// Host picture of one device buffer. Huge strides put the elements of a tensor gigabytes apart, so
/// the picture consists of pieces; what lies between two of them is address space that belongs to
/// nobody, and devices that can do so never give it memory.
struct BufferImage {
  /// Ranges count from the start of the buffer. Only `accessible` belongs to the kernel: the rest
  /// are guards. Only `initialised` holds values; reading any other byte is a defect that the SIMT
  /// executor reports.
  struct Piece {
    std::size_t begin = 0;  ///< where `bytes` lie in the buffer
    std::vector<std::byte> bytes = {};
    ByteRange accessible = {};
    std::vector<ByteRange> initialised = {};
  };
  std::string name = {};
  std::vector<Piece> pieces = {};  ///< ascending, none overlaps another
  std::size_t alignment = 256;     ///< of the address of byte 0; a power of two up to 256
  bool is_input = false;           ///< kernels may only read it
  /// Memory behind the last byte cannot be touched at all, on devices that can do so
  /// (Device::ends_buffers_at_pages); the others ignore it.
  bool ends_at_page = false;

  [[nodiscard]] std::size_t size_bytes() const {
    return pieces.empty() ? 0 : pieces.back().begin + pieces.back().bytes.size();
  }
};

/// Place of a buffer, without what it holds: what another process must know of it to have one
/// like it.
struct BufferPlace {
  std::string name = {};
  std::byte* address = nullptr;        ///< of byte 0
  std::vector<ByteRange> pieces = {};  ///< ascending; what lies between two of them is nobody's
  ByteRange accessible = {};           ///< from the kernel's first byte to its last
  std::size_t alignment = 256;         ///< of the address
  bool is_input = false;               ///< kernels may only read it
  bool ends_at_page = false;           ///< what follows the last byte cannot be touched

  [[nodiscard]] std::size_t size_bytes() const { return pieces.empty() ? 0 : pieces.back().end; }
};
[[nodiscard]] BufferPlace place_of(const BufferImage& image);

/// A defect that the executor saw while the kernel ran: a data race, an access out of bounds, a
/// read of memory that nothing wrote, a barrier that not all threads reach.
struct Finding {
  std::string kind;     ///< `data race`, `out of bounds`, `uninitialised read`, `divergent barrier`
  std::string message;  ///< kernel, source line, block, threads
};

/// Readings of the machine's sensors while it works.
struct DeviceState {
  double sm_clock_mhz = 0, memory_clock_mhz = 0, power_w = 0, temperature_c = 0;
  /// Why the clocks are lower than asked for now, such as `power cap`; empty: they are not;
  /// nothing: the device does not tell.
  std::optional<std::vector<std::string>> throttle_reasons{};
};

/// Work of a device that was recorded once. Ends before the device does.
class Recording {
 public:
  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  virtual ~Recording() = default;
  /// Launches the recorded work once, after what was launched before.
  virtual void replay() = 0;
};

/// Memory and time of the place where kernels run. One Device belongs to one host thread.
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  /// Copies the pieces over; the returned address is that of the buffer's byte 0, aligned as the
  /// image says. Throws MachineError when there is no room.
  [[nodiscard]] virtual std::byte* upload(const BufferImage& image) = 0;
  /// `bytes` bytes for the harness itself, values undefined: no guards, no copy from the host.
  [[nodiscard]] virtual std::byte* allocate(std::size_t bytes) {
    BufferImage::Piece piece{.bytes = std::vector<std::byte>(bytes), .accessible = {0, bytes}};
    return upload({.name = "scratch", .pieces = {std::move(piece)}});
  }
  /// A buffer of the harness itself that holds `values`: no guards.
  [[nodiscard]] virtual std::byte* upload_values(std::span<const std::byte> values) {
    BufferImage::Piece piece{.bytes = {values.begin(), values.end()},
                             .accessible = {0, values.size()},
                             .initialised = {{0, values.size()}}};
    return upload({.name = "values", .pieces = {std::move(piece)}});
  }
  /// Writes `pattern` over and over, `bytes` bytes from `to` on, into a buffer of upload_values().
  /// `pattern` is not empty. The default is for devices whose memory is the host's.
  virtual void fill(std::byte* to, std::size_t bytes, std::span<const std::byte> pattern);
  /// A buffer may end where memory ends, so that touching the byte behind it ends the process.
  [[nodiscard]] virtual bool ends_buffers_at_pages() const { return false; }
  virtual void download(const std::byte* from, std::span<std::byte> to) = 0;
  virtual void release(std::byte* buffer) noexcept = 0;
  /// Leaves NaN wherever a kernel might find what an earlier one left behind: in shared memory,
  /// which no launch clears. Sessions call it before every launch that is judged.
  virtual void poison_scratch() {}
  /// Waits for launched work; a failed launch throws MachineError.
  virtual void synchronize() = 0;
  /// Milliseconds that `work` took on the device.
  [[nodiscard]] virtual double time_ms(const std::function<void()>& work) = 0;
  /// Milliseconds that `work` takes without what launches cost the host: it is recorded first and
  /// then replayed at once, as serving systems do. Where nothing can be recorded, time_ms().
  [[nodiscard]] virtual double replay_ms(const std::function<void()>& work) {
    return time_ms(work);
  }
  /// True if work can be recorded and replayed, as a CUDA graph.
  [[nodiscard]] virtual bool records() const { return false; }
  /// Records what `work` launches; none of it is done. `work` must neither wait for the device nor
  /// ask it for memory. Throws MachineError where something cannot be recorded, and whatever `work`
  /// throws; work can be launched afterwards all the same.
  [[nodiscard]] virtual std::unique_ptr<Recording> record(const std::function<void()>& work);
  /// Clocks, power, temperature now; nothing where nobody measures them.
  [[nodiscard]] virtual std::optional<DeviceState> state() { return std::nullopt; }
  /// Milliseconds since some moment in the past during which clocks were lower than asked for, by
  /// reason; reasons overlap. What the device does not count is missing. On a GPU asking takes
  /// about a millisecond, and the driver counts in steps of 100 ms.
  [[nodiscard]] virtual std::map<std::string, double> throttled_ms() { return {}; }
  /// Leaves nothing of earlier work in the L2 cache, where there is one.
  virtual void flush_cache() {}
  /// Runs `work`, more than once if need be, and returns what the counters and groups of counters
  /// that are named said. Slows it down: never time it. Throws MachineError with a sentence where
  /// the machine has no counters or forbids them, InvalidInput for an unknown name.
  [[nodiscard]] virtual std::vector<Measurement> count(std::span<const std::string> counters,
                                                       const std::function<void()>& work);
  /// Fixes the order in which blocks and threads advance, where the device lets us choose it.
  virtual void seed_schedule(std::uint64_t /*seed*/) {}
  /// Defects since the last call. Always empty on devices that cannot see them.
  [[nodiscard]] virtual std::vector<Finding> take_findings() { return {}; }
  /// The cudaStream_t in which everything happens, for kernels from outside; null where there is
  /// none.
  [[nodiscard]] virtual void* native_stream() const { return nullptr; }
  /// One line: model, memory, driver.
  [[nodiscard]] virtual std::string description() const = 0;
  /// The buffer that holds an address of host memory; null: none of this device's, or the device
  /// has none there.
  [[nodiscard]] virtual const BufferPlace* buffer_at(const void* /*address*/) const {
    return nullptr;
  }
};

/// Makes the devices of an executor. `unavailable` gives the reason when this machine has none.
struct DeviceFactory {
  Executor executor;
  std::function<std::string()> unavailable;  ///< empty string: available
  std::function<std::unique_ptr<Device>()> make;
};

}  // namespace attest
