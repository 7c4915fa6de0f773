#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/index_arrays.hpp"
#include "core/kernel.hpp"
#include "core/tensor.hpp"
#include "experiments/tuning/bench.hpp"
#include "experiments/tuning/small_case.hpp"

namespace attest {

/// Tries Plans on a device. A Plan is verified twice: all laws on a small problem of the same kind,
/// and on the problem itself every LSE written, sampled rows of O and LSE within their bounds.
/// Inputs are N(0, 1), and all Plans share them.
class DeviceBench final : public Bench {
 public:
  /// All arguments outlive the bench. Throws MachineError when the device has no room.
  DeviceBench(const KernelInfo& kernel, const Problem& problem, Device& device,
              SmallCases& small_cases);
  ~DeviceBench() override;

  [[nodiscard]] std::optional<std::string> why_wrong(const Plan& plan) override;
  /// Mean over as many launches as fill about two milliseconds.
  [[nodiscard]] double time_ms(const Plan& plan) override;

 private:
  /// A query row whose exact answer is compared.
  struct Row {
    Shape at{};                                 ///< batch, head, query
    std::int64_t o_offset = 0, lse_offset = 0;  ///< of its elements on the device
    Problem problem{};                          ///< one query that sees all of its keys
    Inputs inputs{};
  };

  void sample_rows();
  [[nodiscard]] Row sampled_row(std::int64_t entry, std::int64_t head, std::int64_t query) const;
  [[nodiscard]] static std::optional<std::string> why_row_is_wrong(const Row& row,
                                                                   const PrecisionPlan& precision,
                                                                   const Outputs& got);
  /// Puts the Plan and a workspace for it into the arguments.
  void prepare(const Plan& plan);

  const KernelInfo& kernel_;
  const Problem problem_;
  Device& device_;
  SmallCases& small_cases_;
  IndexArrays indices_;
  Arguments arguments_;
  std::vector<std::byte> unwritten_o_, unwritten_lse_;
  std::vector<std::byte*> buffers_;
  std::byte* o_ = nullptr;
  std::byte* lse_ = nullptr;
  std::byte* workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0;
  std::vector<Row> rows_;
  std::map<std::string, int> launches_;  ///< that are timed at once, by Plan
};

}  // namespace attest
