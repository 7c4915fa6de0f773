#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/case.hpp"
#include "core/device.hpp"
#include "core/kernel.hpp"
#include "core/tensor.hpp"

namespace attest {

/// What a launch did to memory besides writing its answer. Each list holds sentences; empty means
/// clean.
struct MemoryReport {
  std::vector<std::string>
      damaged_guards;  ///< bytes outside the tensors, or in the gaps of their strides, changed
  std::vector<std::string> unwritten_outputs;  ///< elements of O or LSE that still hold the poison
  std::vector<std::string> modified_inputs;    ///< Q, K or V changed
};

/// A prepared run: inputs resident on the device, outputs and workspace poisoned with NaN, every
/// buffer between guards, gaps of the strides filled with NaN.
class Session {
 public:
  /// Layouts and schedule come from the case. `kernel` and `device` outlive the session.
  Session(const KernelInfo& kernel, const Case& c, const Inputs& inputs, Device& device);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  void launch();
  /// Waits, checks for errors and reads O and LSE. Unwritten elements read as NaN.
  [[nodiscard]] Outputs read_outputs();
  /// Valid after read_outputs().
  [[nodiscard]] const MemoryReport& memory_report() const { return report_; }
  /// Median of `repeats` launches after one warm-up, in milliseconds.
  [[nodiscard]] double timed_launch(int repeats);

 private:
  struct Buffer {
    BufferImage image;
    Shape shape{};
    Strides strides;
    std::size_t first = 0;  ///< byte of element (0, 0, 0, 0)
    std::size_t element_size = 0;
    bool is_output = false;
    std::byte* device = nullptr;
  };
  /// `values` is null for outputs.
  [[nodiscard]] static Buffer make_buffer(std::string name, const Shape& shape,
                                          const TensorLayout& layout, ElementType type,
                                          const Tensor<float>* values);
  void check_buffer(const Buffer& buffer, const std::vector<std::byte>& now);

  const KernelInfo& kernel_;
  Device& device_;
  Problem problem_;
  Arguments arguments_;
  std::vector<Buffer> buffers_;  ///< q, k, v, o, lse, workspace
  MemoryReport report_;
};

}  // namespace attest
