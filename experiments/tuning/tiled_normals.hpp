#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/element_type.hpp"

namespace attest {

/// N(0, 1) values for tensors of any size: a drawn million, repeated. The period is a prime, so
/// that rows and heads do not repeat with it.
class TiledNormals {
 public:
  static constexpr std::size_t period = 1048573;

  /// Values are exactly representable in `type`.
  TiledNormals(ElementType type, std::uint64_t seed);

  [[nodiscard]] float value(std::int64_t element) const {
    return values_[static_cast<std::size_t>(element) % period];
  }
  /// The first `elements` as a kernel reads them.
  [[nodiscard]] std::vector<std::byte> bytes(std::size_t elements) const;

 private:
  std::size_t element_bytes_;
  std::vector<float> values_;
  std::vector<std::byte> encoded_;
};

/// Made once for each type and seed.
[[nodiscard]] const TiledNormals& tiled_normals(ElementType type, std::uint64_t seed);

}  // namespace attest
