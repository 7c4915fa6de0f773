#pragma once

#include <string_view>
#include <vector>

#include "experiments/study/language/evaluate.hpp"
#include "experiments/study/language/point.hpp"

namespace attest {

/// Name of a value that models give a point before it runs, such as its FLOP. Where a point has
/// several launches, the value is that of the one with most blocks.
struct ModelValueName {
  std::string_view name;
  Dimension dimension;
  std::string_view summary;
};
/// Names of all values of models, in the order of the reference.
[[nodiscard]] const std::vector<ModelValueName>& model_value_names();

/// Answers names for one point; what needs launches asks `context` for them, once.
class ModelValues {
 public:
  ModelValues(const KernelInfo& kernel, const Case& subject, const ExpansionContext& context);
  /// Missing, with the reason, for what is not known.
  [[nodiscard]] Value value(std::string_view name);

 private:
  struct Launch {
    LaunchConfiguration configuration;
    Value registers, shared_bytes;
  };
  void look_at_launches();

  const KernelInfo& kernel_;
  const Case& subject_;
  const ExpansionContext& context_;
  bool has_looked_ = false;
  bool asks_for_blocks_ = false;  ///< the grid is as large as the device holds blocks
  std::vector<Launch> launches_;
  std::string why_no_launches_;
};

}  // namespace attest
