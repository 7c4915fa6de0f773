#include "experiments/tuning/tiled_normals.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "core/random.hpp"

namespace attest {

TiledNormals::TiledNormals(ElementType type, std::uint64_t seed)
    : element_bytes_(format_of(type).size_bytes),
      values_(period),
      encoded_(period * element_bytes_) {
  for (std::size_t i = 0; i < period; ++i) {
    values_[i] = static_cast<float>(round_to(type, random_normal(seed, 0, i)));
    const std::uint32_t bits = encode(type, values_[i]);
    std::memcpy(&encoded_[i * element_bytes_], &bits, element_bytes_);
  }
}

std::vector<std::byte> TiledNormals::bytes(std::size_t elements) const {
  std::vector<std::byte> all(elements * element_bytes_);
  for (std::size_t at = 0; at < all.size(); at += encoded_.size()) {
    std::memcpy(&all[at], encoded_.data(), std::min(encoded_.size(), all.size() - at));
  }
  return all;
}

const TiledNormals& tiled_normals(ElementType type, std::uint64_t seed) {
  static std::map<std::pair<ElementType, std::uint64_t>, TiledNormals> made;
  return made.try_emplace({type, seed}, type, seed).first->second;
}

}  // namespace attest
