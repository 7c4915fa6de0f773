#include "core/run/host_mapping.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"

namespace attest {
namespace {

/// Address space, not memory, on both sides of each buffer: an access that is a few rows off ends
/// there.
constexpr std::size_t untouchable_bytes = std::size_t{1} << 17;

/// Facts about a mapping that a signal handler may read. A slot is free while `begin` is 0; the
/// other members are written before `begin` is.
struct KnownMapping {
  std::atomic<bool> is_taken = false;
  std::atomic<std::uintptr_t> begin = 0;  ///< of the reserved pages
  std::uintptr_t end = 0;
  std::uintptr_t first = 0, last = 0;  ///< the bytes that belong to the kernel
  bool is_input = false;
  std::array<char, 24> name{};
};

/// A launch has at most nine buffers; threads of one process share the slots. A mapping without a
/// slot works like the others, only its faults have no name.
std::array<KnownMapping, 256> known_mappings;

void remember(const BufferPlace& place, const std::byte* pages, std::size_t inside_bytes) {
  for (KnownMapping& known : known_mappings) {
    if (known.is_taken.exchange(true)) continue;
    const auto start = reinterpret_cast<std::uintptr_t>(place.address);
    const auto begin = reinterpret_cast<std::uintptr_t>(pages) - untouchable_bytes;
    known.end = begin + inside_bytes + 2 * untouchable_bytes;
    known.first = start + place.accessible.begin;
    known.last = start + place.accessible.end;
    known.is_input = place.is_input;
    known.name[place.name.copy(known.name.data(), known.name.size() - 1)] = '\0';
    known.begin = begin;
    return;
  }
}

void forget(const std::byte* pages) {
  for (KnownMapping& known : known_mappings) {
    if (known.begin != reinterpret_cast<std::uintptr_t>(pages) - untouchable_bytes) continue;
    known.begin = 0;
    known.is_taken = false;
  }
}

}  // namespace

std::size_t HostMapping::pages_bytes(std::size_t buffer_bytes) {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (std::max<std::size_t>(buffer_bytes, 1) + page - 1) / page * page;
}

std::size_t HostMapping::bytes_before(const BufferPlace& place) {
  if (!place.ends_at_page) return 0;
  return (pages_bytes(place.size_bytes()) - place.size_bytes()) / place.alignment * place.alignment;
}

HostMapping::HostMapping(const BufferImage& image) : place_(place_of(image)) {
  reserve();
  try {
    fill(image, false);
  } catch (...) {
    munmap(pages_ - untouchable_bytes, inside_bytes_ + 2 * untouchable_bytes);
    throw;  // a constructor that throws has no destructor
  }
}

HostMapping::HostMapping(BufferPlace place, int file, std::size_t from_byte)
    : place_(std::move(place)) {
  reserve();
  if (mmap(pages_, inside_bytes_, place_.is_input ? PROT_READ : PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(from_byte)) == MAP_FAILED) {
    munmap(pages_ - untouchable_bytes, inside_bytes_ + 2 * untouchable_bytes);
    refuse();
  }
  place_.address = pages_ + bytes_before(place_);
  remember(place_, pages_, inside_bytes_);
}

void HostMapping::reserve() {
  inside_bytes_ = pages_bytes(place_.size_bytes());
  void* const mapped = mmap(nullptr, inside_bytes_ + 2 * untouchable_bytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) refuse();
  pages_ = static_cast<std::byte*>(mapped) + untouchable_bytes;
}

void HostMapping::refuse() const {
  throw MachineError(fmt::format(
      "cannot reserve {} bytes of address space for {}: {}; a limit (ulimit -v) may be set",
      place_.size_bytes(), place_.name, std::strerror(errno)));
}

HostMapping::HostMapping(HostMapping&& other) noexcept
    : pages_(std::exchange(other.pages_, nullptr)),
      inside_bytes_(other.inside_bytes_),
      place_(std::move(other.place_)) {}

HostMapping::~HostMapping() {
  if (pages_ == nullptr) return;
  forget(pages_);
  munmap(pages_ - untouchable_bytes, inside_bytes_ + 2 * untouchable_bytes);
}

void HostMapping::fill(const BufferImage& image, bool is_used) {
  if (mprotect(pages_, inside_bytes_, PROT_READ | PROT_WRITE) != 0) refuse();
  place_.address = pages_ + bytes_before(place_);
  if (is_used) {
    std::fill(pages_, place_.address, std::byte{0xff});
    std::fill(place_.address + place_.size_bytes(), pages_ + inside_bytes_, std::byte{0xff});
  }
  for (const BufferImage::Piece& piece : image.pieces) {
    std::ranges::copy(piece.bytes, place_.address + piece.begin);
  }
  if (place_.is_input && mprotect(pages_, inside_bytes_, PROT_READ) != 0) refuse();
  remember(place_, pages_, inside_bytes_);
}

bool HostMapping::retire() noexcept {
  forget(pages_);
  return mprotect(pages_, inside_bytes_, PROT_NONE) == 0;
}

bool HostMapping::fits(const BufferImage& image) const {
  return image.pieces.size() == 1 && image.pieces.front().begin == 0 &&
         pages_bytes(image.size_bytes()) == inside_bytes_;
}

void HostMapping::reuse(const BufferImage& image) {
  place_ = place_of(image);
  fill(image, true);
}

bool describe_fault(const void* address, bool is_write, std::span<char> text) noexcept {
  std::size_t length = 0;
  const auto append = [&](std::string_view words) {
    const std::size_t count = std::min(words.size(), text.size() - 1 - length);
    std::memcpy(text.data() + length, words.data(), count);
    length += count;
    text[length] = '\0';
  };
  append("");
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const KnownMapping& known : known_mappings) {
    const std::uintptr_t begin = known.begin;
    if (begin == 0 || at < begin || at >= known.end) continue;
    append(is_write ? "wrote " : "read ");
    if (at < known.first) {
      append("before the start of ");
    } else if (at >= known.last) {
      append("past the end of ");
    } else if (is_write) {
      append("to ");
    }
    append(known.name.data());
    if (at >= known.first && at < known.last && known.is_input) append(", which is an input");
    return true;
  }
  return false;
}

}  // namespace attest
