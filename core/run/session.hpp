#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/tensor_list.hpp"
#include "core/records/case.hpp"
#include "core/run/device.hpp"
#include "core/run/guarded_buffer.hpp"
#include "core/run/kernel.hpp"
#include "core/run/launch_image.hpp"

namespace attest {

/// Conditions of a launch that laws vary beside its case.
struct SessionOptions {
  /// The key_len that a kernel is told which reads lengths on the device, an upper bound; no more
  /// than the problem's: that.
  std::int64_t capacity = 0;
  /// Rows of nobody behind every packed entry, of kernels that take them.
  std::int64_t entry_gap = 0;
  /// The dimension, 0 for the batch and 1 for heads, of which every input with strides of its own
  /// lies in memory once, with a stride of 0: its values are the same along it. Of problems without
  /// lengths or pages, and of kernels that take it.
  std::optional<std::size_t> broadcast{};
};

/// A prepared run: inputs resident on the device, outputs and workspace poisoned with NaN, every
/// buffer between guards, gaps of the strides filled with NaN. Where the device can do so, the
/// case's schedule seed draws for every buffer whether memory ends where the buffer does; seed 0
/// draws none. Where the problem has lengths, the entries of the batch lie packed on the device,
/// and with a paging K and V lie in pages; on the host every tensor keeps the problem's shape, and
/// rows that do not exist read as TensorSpec::absent. Pages are shared only where `inputs` are the
/// same in all entries, as the problem says of them.
class Session {
 public:
  /// Layouts and schedule come from the case; a layout is that of the packed tensor where there are
  /// lengths. `kernel` and `device` outlive the session.
  Session(const KernelInfo& kernel, const Case& c, const Inputs& inputs, Device& device,
          const SessionOptions& options = {});
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  /// Poisons the device's scratch memory, then launches. The floating-point mode is afterwards what
  /// it was. Throws MachineError if the kernel forked and its child came back as well; the child
  /// ends here.
  void launch();
  /// Change of this thread's floating-point mode by the last launch; empty: none.
  [[nodiscard]] const std::string& changed_mode() const { return changed_mode_; }
  /// Waits, checks for errors and reads the outputs. Unwritten elements read as NaN, and so does an
  /// output that the kernel does not give.
  [[nodiscard]] Outputs read_outputs();
  /// Effects of the last launch on memory; valid after read_outputs().
  [[nodiscard]] const MemoryReport& memory_report() const { return report_; }
  /// Arguments of a launch: addresses, strides, problem and Plan.
  [[nodiscard]] const Arguments& arguments() const { return image_.arguments; }
  /// Writes shorter lengths into the arrays of a page table (IndexArrays), where they were.
  void shorten_entries() { image_.indices.shorten(device_); }
  void restore_entries() { image_.indices.restore(device_); }
  /// Median of `repeats` launches after one warm-up, in milliseconds.
  [[nodiscard]] double timed_launch(int repeats);

 private:
  struct Buffer {
    GuardedBuffer guarded;
    std::byte* device = nullptr;
    std::optional<OutputIndex> output = std::nullopt;  ///< which one it holds
  };
  void add(std::string name, GuardedBuffer::Use use, const Shape& shape, const TensorLayout& layout,
           ElementType type, const Tensor<float>* values, std::size_t alignment,
           const std::vector<bool>& used_steps = {}, const std::vector<bool>& used_rows = {});
  [[nodiscard]] InputArgument add_input(InputIndex index, const TensorLayout& layout,
                                        const Tensor<float>& values);
  /// K and V in one buffer: K's place; V's is `values`.
  [[nodiscard]] InputArgument add_joined(const Inputs& inputs, const TensorLayout& layout,
                                         InputArgument& values);
  [[nodiscard]] Tensor<float> as_stored(InputIndex index, const Tensor<float>& values) const;
  [[nodiscard]] OutputArgument add_output(OutputIndex index, const TensorLayout& layout);
  void add_extra_memory(const ExtraMemory& needed);
  [[nodiscard]] std::size_t alignment_of(const TensorSpec& tensor) const;
  [[nodiscard]] std::byte* first_element(const Buffer& buffer) const;
  [[nodiscard]] bool draws_end_at_page(std::size_t buffer) const;
  void release() noexcept;

  const KernelInfo& kernel_;
  Device& device_;
  Problem problem_;
  Paging paging_;
  SessionOptions options_;
  LaunchImage image_;
  std::vector<Buffer> buffers_;  ///< inputs, outputs, workspace
  std::uint64_t schedule_seed_;
  MemoryReport report_;
  std::string changed_mode_;
};

}  // namespace attest
