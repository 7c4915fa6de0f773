#include "experiments/study/language/spec.hpp"

#include <fmt/format.h>

namespace attest {

std::string to_string(const StudyError& error, std::string_view file) {
  return fmt::format("{}:{}:{}: {}", file, error.place.line, error.place.column, error.sentence);
}

}  // namespace attest
