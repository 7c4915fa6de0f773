#include "core/run/kept_memory.hpp"

#include <algorithm>
#include <utility>

namespace attest {
namespace {

std::vector<std::size_t> sizes_of(const BufferImage& image) {
  std::vector<std::size_t> sizes;
  for (const BufferImage::Piece& piece : image.pieces) {
    sizes.push_back(piece.begin);
    sizes.push_back(piece.bytes.size());
  }
  return sizes;
}

}  // namespace

KeptMemory::~KeptMemory() {
  for (const Buffer& buffer : buffers_) device_.release(buffer.address);
}

std::byte* KeptMemory::upload(const BufferImage& image) {
  const std::size_t index = next_++;
  std::vector<std::size_t> sizes = sizes_of(image);
  ++used_;
  if (index < buffers_.size()) {
    const Buffer& kept = buffers_[index];
    if (kept.sizes == sizes && kept.alignment == image.alignment &&
        kept.ends_at_page == image.ends_at_page) {
      if (!leftover_.empty() && image.name == leftover_) return kept.address;
      for (const BufferImage::Piece& piece : image.pieces) {
        if (piece.bytes.empty()) continue;
        device_.fill(kept.address + piece.begin, piece.bytes.size(), piece.bytes);
      }
      return kept.address;
    }
    has_moved_ = true;
  }
  BufferImage writable = image;
  writable.is_input = false;
  for (BufferImage::Piece& piece : writable.pieces) {
    piece.initialised = {piece.accessible};
  }
  Buffer buffer{.sizes = std::move(sizes),
                .alignment = image.alignment,
                .ends_at_page = image.ends_at_page,
                .address = device_.upload(writable)};
  if (index < buffers_.size()) {
    device_.release(std::exchange(buffers_[index], std::move(buffer)).address);
  } else {
    buffers_.push_back(std::move(buffer));
  }
  return buffers_[index].address;
}

void KeptMemory::release(std::byte* /*buffer*/) noexcept {
  if (used_ > 0 && --used_ == 0) next_ = 0;
}

}  // namespace attest
