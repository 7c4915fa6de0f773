#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "include/attest/plugin.h"

namespace attest {

/// Bytes as they travel between two processes of this program: a list of numbers.
[[nodiscard]] Json bytes_json(const void* bytes, std::size_t count);
/// Bytes that bytes_json() wrote; throws InvalidInput for anything else.
[[nodiscard]] std::vector<std::byte> bytes_from(const Json& json);

/// Declaration of a plugin, that is what attest_plugin() returned, in the process that loaded it:
/// the bytes of every struct, and beside them what their pointers point to. Arrays that no plugin
/// may have so long are left out, as what another version of plugin.h means by them.
[[nodiscard]] Json declaration_json(const AttestPlugin* plugin);

/// Structs of a plugin's declaration in the process that judges, where no byte is believed: every
/// pointer leads into memory of this object, or nowhere, but for those of functions and user_data,
/// which are not followed here.
class Declaration {
 public:
  /// Throws InvalidInput for what declaration_json() never says. `where` names the plugin.
  Declaration(const Json& said, const std::string& where);
  Declaration(const Declaration&) = delete;
  Declaration& operator=(const Declaration&) = delete;

  /// Null where attest_plugin() returned NULL.
  [[nodiscard]] const AttestPlugin* plugin() const { return plugin_; }

 private:
  /// Memory for a struct that begins with its size; beyond what was said it holds zeros.
  std::byte* add_struct(const Json& bytes);
  std::byte* add(std::vector<std::byte> bytes);
  const char* add_text(const Json& text);
  /// Throws InvalidInput where they are not `count`.
  template <typename Element>
  const Element* add_list(const std::vector<Element>& elements, std::size_t count);
  /// Array of `count` elements from the bytes that were said; null where there are none.
  template <typename Element>
  const Element* add_array(const Json& array, std::size_t count);
  const char* const* add_texts(const Json& texts, std::size_t count);
  const AttestPlan* add_plans(const Json& plans, std::size_t count);
  const AttestKernel* add_kernel(const Json& kernel);

  std::deque<std::vector<std::byte>> memory_;  ///< none moves when another comes
  const AttestPlugin* plugin_ = nullptr;
};

}  // namespace attest
