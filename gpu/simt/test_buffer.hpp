#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "core/run/device.hpp"
#include "gpu/simt/simt_device.hpp"

namespace attest {
/// Values on a device between guards of 64 bytes, for tests of the executor.
template <typename T>
class TestBuffer {
 public:
  enum class Contents { written, unwritten };

  TestBuffer(Device& device, std::string name, std::vector<T> values,
             Contents contents = Contents::written)
      : device_(device), count_(values.size()) {
    const std::size_t bytes = count_ * sizeof(T);
    BufferImage::Piece piece;
    piece.bytes.resize(bytes + 2 * guard);
    if (bytes > 0) std::memcpy(piece.bytes.data() + guard, values.data(), bytes);
    piece.accessible = {guard, guard + bytes};
    if (contents == Contents::written) piece.initialised = {piece.accessible};
    start_ = device.upload({.name = std::move(name), .pieces = {std::move(piece)}});
  }
  TestBuffer(const TestBuffer&) = delete;
  TestBuffer& operator=(const TestBuffer&) = delete;
  ~TestBuffer() { device_.release(start_); }

  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(start_ + guard); }
  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> values(count_);
    device_.download(start_ + guard, std::as_writable_bytes(std::span<T>(values)));
    return values;
  }

 private:
  static constexpr std::size_t guard = 64;
  Device& device_;
  std::size_t count_;
  std::byte* start_ = nullptr;
};

/// `gpu/simt/FILE:N` for the line of a test's kernels that carries the mark.
inline std::string marked_line(const std::string& file_name, const std::string& mark) {
  const std::string name = "gpu/simt/" + file_name;
  std::ifstream file(std::string(ATTEST_SOURCE_DIR) + "/" + name);
  int number = 1;
  for (std::string line; std::getline(file, line); ++number) {
    if (line.ends_with("mark: " + mark)) return name + ":" + std::to_string(number);
  }
  return "mark not found";
}

inline std::string text_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings) text += f.kind + ": " + f.message + "\n";
  return text;
}

/// The device has one finding, of this kind and with all of the parts in its text.
inline void expect_one(simt::SimtDevice& device, const std::string& kind,
                       const std::vector<std::string>& parts) {
  const std::vector<Finding> findings = device.take_findings();
  ASSERT_EQ(findings.size(), 1U) << text_of(findings);
  EXPECT_EQ(findings[0].kind, kind);
  for (const std::string& part : parts)
    EXPECT_NE(findings[0].message.find(part), std::string::npos)
        << findings[0].message << "\nlacks " << part;
}

}  // namespace attest
