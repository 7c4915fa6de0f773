#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "core/attention/element_type.hpp"
#include "core/attention/problem.hpp"
#include "core/run/arguments.hpp"
#include "include/attest/plugin.h"

namespace attest {
/// The tensors of one launch as plugin.h lists them: those of the operation, then the arrays that
/// say how they are packed and what is hidden. AttestRun points into it.
class PluginTensors {
 public:
  explicit PluginTensors(const Arguments& arguments);
  PluginTensors(const PluginTensors&) = delete;
  PluginTensors& operator=(const PluginTensors&) = delete;

  [[nodiscard]] const AttestTensor* const* data() const { return pointers_.data(); }
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  void add(const AttestTensor& tensor);
  void add_page_table(const PageTable& table, std::int64_t batch);
  void add_key_lists(const KeyLists& lists, std::int64_t batch);

  static constexpr std::size_t most_indices = 12;
  std::array<AttestTensor, 2 * most_tensors + most_indices> tensors_{};
  std::array<const AttestTensor*, 2 * most_tensors + most_indices> pointers_{};
  std::size_t count_ = 0;
};

/// A Problem as plugin.h tells a kernel of it. Throws std::logic_error if the table of fields has
/// one that has no place there.
[[nodiscard]] AttestProblem to_c(const Problem& problem, void* user_data);

/// A format of elements as plugin.h writes it.
[[nodiscard]] AttestFormat to_c(ElementType type);
/// Element type of a format as plugin.h writes it; nothing for a format that no tensor has.
[[nodiscard]] std::optional<ElementType> element_type_of(const AttestFormat& format);

/// True if code, bits and lanes are the same.
[[nodiscard]] bool is_same(const AttestFormat& a, const AttestFormat& b);
/// Text of a format for complaints: `{code 2, 64 bits, 1 lanes}`.
[[nodiscard]] std::string to_string(const AttestFormat& format);

}  // namespace attest
