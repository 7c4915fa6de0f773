#include "core/host_mapping.hpp"

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

#include "core/error.hpp"

namespace attest {
namespace {

/// Address space, not memory, on both sides of each buffer: an access that is a few rows off ends
/// there.
constexpr std::size_t untouchable_bytes = std::size_t{1} << 17;

/// What a signal handler may know of a mapping. A slot is free while `begin` is 0; the other
/// members are written before `begin` is.
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

std::size_t whole_pages(std::size_t size, std::size_t page) {
  return (size + page - 1) / page * page;
}

void remember(const BufferImage& image, const std::byte* reserved, std::size_t reserved_bytes,
              const std::byte* address) {
  for (KnownMapping& known : known_mappings) {
    if (known.is_taken.exchange(true)) continue;
    const auto start = reinterpret_cast<std::uintptr_t>(address);
    const auto begin = reinterpret_cast<std::uintptr_t>(reserved);
    known.end = begin + reserved_bytes;
    known.first = start + (image.pieces.empty() ? 0 : image.pieces.front().accessible.begin);
    known.last = start + (image.pieces.empty() ? 0 : image.pieces.back().accessible.end);
    known.is_input = image.is_input;
    known.name[image.name.copy(known.name.data(), known.name.size() - 1)] = '\0';
    known.begin = begin;
    return;
  }
}

void forget(const std::byte* reserved) {
  for (KnownMapping& known : known_mappings) {
    if (known.begin != reinterpret_cast<std::uintptr_t>(reserved)) continue;
    known.begin = 0;
    known.is_taken = false;
  }
}

[[noreturn]] void refuse(const BufferImage& image) {
  throw MachineError(fmt::format(
      "cannot reserve {} bytes of address space for {}: {}; a limit (ulimit -v) may be set",
      image.size_bytes(), image.name, std::strerror(errno)));
}

}  // namespace

HostMapping::HostMapping(const BufferImage& image) {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t size = image.size_bytes();
  const std::size_t inside = whole_pages(std::max<std::size_t>(size, 1), page);
  reserved_bytes_ = inside + 2 * untouchable_bytes;
  void* const mapped =
      mmap(nullptr, reserved_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) refuse(image);
  reserved_ = static_cast<std::byte*>(mapped);
  std::byte* const pages = reserved_ + untouchable_bytes;
  address_ = pages;
  if (image.ends_at_page) address_ += (inside - size) / image.alignment * image.alignment;
  bool is_done = mprotect(pages, inside, PROT_READ | PROT_WRITE) == 0;
  if (is_done) {
    for (const BufferImage::Piece& piece : image.pieces) {
      std::ranges::copy(piece.bytes, address_ + piece.begin);
    }
    is_done = !image.is_input || mprotect(pages, inside, PROT_READ) == 0;
  }
  if (!is_done) {
    const int error = errno;
    munmap(reserved_, reserved_bytes_);
    errno = error;
    refuse(image);
  }
  remember(image, reserved_, reserved_bytes_, address_);
}

HostMapping::HostMapping(HostMapping&& other) noexcept
    : reserved_(std::exchange(other.reserved_, nullptr)),
      reserved_bytes_(other.reserved_bytes_),
      address_(other.address_) {}

HostMapping::~HostMapping() {
  if (reserved_ == nullptr) return;
  forget(reserved_);
  munmap(reserved_, reserved_bytes_);
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
