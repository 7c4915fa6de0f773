#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/attention/layout.hpp"
#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"

namespace attest {

/// Values that fill the inputs: a family by name and the numbers that fix it.
struct InputSpec {
  std::string family = "normal";
  std::uint64_t seed = 0;
  double magnitude = 1.0;  ///< family-specific size: of the logits in most families
  bool round_to_integers =
      false;  ///< Q, K, V rounded to whole numbers: what shrinking ends at where the bug allows

  friend bool operator==(const InputSpec&, const InputSpec&) = default;
};

/// Description of a run: all that is needed to rebuild it bit for bit.
struct Case {
  std::string kernel = {};
  Problem problem = {};
  Plan plan = {};
  Layouts layouts = {};
  InputSpec inputs = {};
  std::uint64_t schedule_seed =
      0;  ///< order in which the SIMT executor advances blocks and threads

  friend bool operator==(const Case&, const Case&) = default;
};

/// One line that identifies the case to a reader.
[[nodiscard]] std::string to_string(const Case& c);
/// One line that identifies the case, as to_string() does, safe as a file name.
[[nodiscard]] std::string file_key(const Case& c);

/// JSON with every field written out, but for fields of the Plan that the kernel does not use and
/// extras of the Problem that it does not have.
[[nodiscard]] std::string to_json(const Case& c);
/// Case of a JSON text, inverse of to_json(). Strict: an unknown key, a missing key or a wrong type
/// throws InvalidInput that names `where`, the key and what is allowed.
[[nodiscard]] Case case_from_json(std::string_view text, std::string_view where);

}  // namespace attest
