#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/storage.hpp"
#include "core/attention/tensor_list.hpp"
#include "core/run/arguments.hpp"
#include "core/run/index_arrays.hpp"
#include "core/run/kernel.hpp"
#include "cpu_reference/forward/reference_f64.hpp"
#include "experiments/timing/tiled_values.hpp"

namespace attest {

/// Some rows of what a launch gave, beside their exact answers.
struct SampledRows {
  struct Row {
    Rows kind = Rows::queries;
    Shape at{};  ///< batch, head, and query or key
    Answer answer{};
    Outputs got{};  ///< those outputs that have rows of this kind and that the kernel gives
  };
  std::vector<Row> rows;
  std::string failure{};  ///< a sentence: the launch failed, or some LSE was not written; no rows
  const Operation* operation = &forward_operation;

  /// The failure, or the row that is out of its bounds; nothing when all is well.
  [[nodiscard]] std::optional<std::string> why_wrong() const;
};

/// A problem whose inputs lie on a device, of whatever size it may be: any kernel and Plan can be
/// launched on it, checked and timed. Tensors have no gaps; K and V lie in pages where `paging` is
/// used. See tiled_inputs() for the values; those that follow from others, as O and LSE of a
/// backward pass do, are what a kernel of the device gives for the others.
class ResidentProblem {
 public:
  /// `device` outlives it. Throws MachineError when the device has no room, InvalidInput when the
  /// family does not fit.
  ResidentProblem(const Problem& problem, const InputSpec& inputs, Device& device,
                  const Paging& paging = {});
  ResidentProblem(const ResidentProblem&) = delete;
  ResidentProblem& operator=(const ResidentProblem&) = delete;
  ~ResidentProblem();

  /// How many sets of values there are to choose from.
  static constexpr std::size_t draws = 4;
  /// Draws all values, so that put_values() takes no time of its own.
  void draw_values();
  /// Puts values number `draw` where the others were. Number 0 has the seed of the inputs, the next
  /// ones the next seeds; odd ones have -V or -V / 2 as well, so that no two give one answer even
  /// where the family does not ask for the seed.
  void put_values(std::size_t draw);
  /// Outputs that no launch has written, where they were.
  void poison_outputs();

  /// Launches once on poisoned outputs; answers() of it. A MachineError names kernel, Plan and
  /// problem.
  [[nodiscard]] SampledRows sample(const KernelInfo& kernel, const Plan& plan,
                                   std::int64_t rows = 4);
  /// What launches gave: looks at every LSE and at `rows` rows of each kind that outputs have, the
  /// first and the last query or key among them.
  [[nodiscard]] SampledRows answers(const KernelInfo& kernel, const Plan& plan, std::int64_t rows);
  /// The worst element of all that launches gave, where it is out of its bound and a reference on
  /// the device finds it in about a tenth of a second; nothing otherwise.
  [[nodiscard]] std::optional<std::string> why_any_row_wrong(const KernelInfo& kernel,
                                                             const Plan& plan);
  void launch(const KernelInfo& kernel, const Plan& plan);
  /// Time of one launch, the mean over some in a row.
  [[nodiscard]] double time_ms(const KernelInfo& kernel, const Plan& plan, LaunchesInRow launches);
  /// The mean over `launches`, nothing of the problem being in the L2 cache when a launch begins.
  [[nodiscard]] double cold_time_ms(const KernelInfo& kernel, const Plan& plan, int launches);

  [[nodiscard]] const Problem& problem() const { return problem_; }

 private:
  /// A query or a key whose rows of the outputs are compared.
  struct Place {
    Rows kind = Rows::queries;
    std::int64_t entry = 0, head = 0, row = 0;
  };
  /// It as a problem of its own: one query that sees all of its keys, or one key that all of its
  /// rows see, those of all query heads that share it.
  struct OneRow {
    Problem problem{};
    Inputs inputs{};
  };
  struct Buffer {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    ElementType type = ElementType::fp32;
  };

  [[nodiscard]] const TiledValues& values(InputIndex input) const {
    return *(*drawn_[draw_])[holder_of(problem_, input).number];
  }
  [[nodiscard]] std::vector<Place> sampled_places(Rows kind, std::int64_t rows) const;
  [[nodiscard]] OneRow row_at(const Place& place) const;
  /// The place's row of an output, as it lies on the device.
  [[nodiscard]] std::vector<float> row_of(OutputIndex output, const Place& place) const;
  /// Row `row` of an entry, wherever it is stored.
  [[nodiscard]] std::int64_t offset_of(InputIndex input, std::int64_t entry, std::int64_t head,
                                       std::int64_t row) const;
  /// The tensor as the operation shapes it.
  [[nodiscard]] Tensor<float> on_host(InputIndex input) const;
  /// The output that the last launch left, in the shape that the operation gives it.
  [[nodiscard]] Tensor<float> given(OutputIndex output) const;
  void release() noexcept;
  /// Memory for a tensor without gaps, uninitialised.
  [[nodiscard]] Buffer allocate(const TensorSpec& tensor);
  /// Has inputs that follow from others made by a kernel, on the device.
  void make_what_follows();
  /// Puts the Plan and a workspace for it into the arguments.
  void prepare(const KernelInfo& kernel, const Plan& plan);
  [[nodiscard]] std::vector<float> downloaded(const Buffer& buffer) const;

  const Problem problem_;
  const InputSpec spec_;
  const Paging paging_;
  Device& device_;
  std::array<std::optional<TiledInputs>, draws> drawn_;
  std::size_t draw_ = draws;  ///< none
  IndexArrays indices_;
  Arguments arguments_;
  std::vector<Storage> storages_;         ///< of inputs, by number in the operation
  std::vector<Buffer> inputs_, outputs_;  ///< likewise
  std::byte* workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0;
  std::byte* counters_ = nullptr;
  std::size_t counter_bytes_ = 0;
};

}  // namespace attest
