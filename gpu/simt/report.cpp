#include "gpu/simt/report.hpp"

#include "fmt/format.h"

namespace attest::simt {

std::string format_index(uint3 index) {
  return fmt::format("({}, {}, {})", index.x, index.y, index.z);
}

}  // namespace attest::simt
