#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/run/launch_image.hpp"
#include "cpu_reference/device_reference.hpp"
#include "experiments/timing/tiled_values.hpp"

namespace attest {

/// A problem whose inputs lie on a device, of whatever size it may be: any kernel and Plan can be
/// launched on it, checked and timed. Tensors have no gaps; K and V lie in pages where `paging` is
/// used. See tiled_inputs() for the values; those that follow from others, as O and LSE of a
/// backward pass do, are what a kernel of the device gives for the others. What was computed is
/// read by sample_rows() and why_any_row_wrong().
class ResidentProblem {
 public:
  /// `device` outlives it. Throws MachineError when the device has no room, InvalidInput when the
  /// family does not fit.
  ResidentProblem(const Problem& problem, const InputSpec& inputs, Device& device,
                  const Paging& paging = {});
  ResidentProblem(const ResidentProblem&) = delete;
  ResidentProblem& operator=(const ResidentProblem&) = delete;
  ~ResidentProblem();

  /// Sets of values that there are to choose from.
  static constexpr std::size_t draws = 4;
  /// Draws all values, so that put_values() takes no time of its own.
  void draw_values();
  /// Puts values number `draw` where the others were. Number 0 has the seed of the inputs, the next
  /// ones the next seeds; odd ones have -V or -V / 2 as well, so that no two give one answer even
  /// where the family does not ask for the seed.
  void put_values(std::size_t draw);
  /// The values that are there, anew: a kernel that wrote to its inputs is not believed.
  void put_values_again();
  /// Outputs that no launch has written, where they were.
  void poison_outputs();

  /// Launches once; on a GPU the kernel may run on afterwards. Throws KernelError or MachineError
  /// as the kernel does.
  void launch(const KernelInfo& kernel, const Plan& plan);
  /// Time of one launch, the mean over some in a row.
  [[nodiscard]] double time_ms(const KernelInfo& kernel, const Plan& plan, LaunchesInRow launches);
  /// The mean over `launches`, nothing of the problem being in the L2 cache when a launch begins.
  [[nodiscard]] double cold_time_ms(const KernelInfo& kernel, const Plan& plan, int launches);

  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] Device& device() const { return device_; }

  /// True if the input follows from others: then its values are on the device alone.
  [[nodiscard]] bool is_made(InputIndex input) const {
    return (*drawn_[draw_])[holder_of(problem_, input).number] == nullptr;
  }
  /// Elements of a row of an input that is not made. From any thread.
  void copy_row(InputIndex input, std::int64_t entry, std::int64_t head, std::int64_t row,
                std::span<float> to) const;
  /// All rows of a head of an input that is made; these belong to queries.
  [[nodiscard]] std::vector<float> head_of(InputIndex input, std::int64_t entry,
                                           std::int64_t head) const;
  /// A row that the last launch left.
  [[nodiscard]] std::vector<float> row_of(OutputIndex output, std::int64_t entry, std::int64_t head,
                                          std::int64_t row) const;
  /// The first `rows` rows of a head that the last launch left, one after the other.
  [[nodiscard]] std::vector<float> head_of(OutputIndex output, std::int64_t entry,
                                           std::int64_t head, std::int64_t rows) const;
  /// All that the last launch left, as it is stored.
  [[nodiscard]] std::vector<float> all_of(OutputIndex output) const;
  /// Inputs and outputs where they lie, for a reference on the device.
  [[nodiscard]] DeviceInputs inputs_on_device() const;
  [[nodiscard]] DeviceOutputs outputs_on_device() const;

 private:
  struct Buffer {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    ElementType type = ElementType::fp32;
  };

  [[nodiscard]] DeviceTensor on_device(const TensorSpec& tensor, const Storage& storage,
                                       const Strides& strides, const Buffer& buffer) const;
  void release() noexcept;
  /// Memory for a tensor without gaps, uninitialised.
  [[nodiscard]] Buffer allocate(const Shape& shape, ElementType type);
  /// Makes the inputs that follow from others, by a kernel, on the device.
  void make_what_follows();
  /// Puts the Plan and a workspace for it into the arguments.
  void prepare(const KernelInfo& kernel, const Plan& plan);
  /// Rows that lie one after the other from unit `first` on: [rows, columns].
  [[nodiscard]] std::vector<float> downloaded(const std::byte* data, ElementType type,
                                              std::int64_t first, std::int64_t rows,
                                              std::int64_t columns) const;

  const Problem problem_;
  const InputSpec spec_;
  Device& device_;
  std::array<std::optional<TiledInputs>, draws> drawn_;
  std::size_t draw_ = draws;  ///< none
  LaunchImage image_;
  std::vector<Buffer> inputs_, outputs_;  ///< by number in the operation
  std::byte* workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0;
  std::byte* counters_ = nullptr;
  std::size_t counter_bytes_ = 0;
};

}  // namespace attest
