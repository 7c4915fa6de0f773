#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/attention/tensor.hpp"

namespace attest {

/// One tensor of a safetensors file.
struct SafetensorsEntry {
  std::string name;
  ElementType type;
  std::vector<std::int64_t> shape;  ///< row-major; empty for a single number
  std::size_t begin = 0;            ///< first byte, counted from the end of the header
  std::size_t end = 0;

  [[nodiscard]] std::int64_t size() const;  ///< number of values
};

/// A safetensors file: 8 bytes of little-endian header length, a JSON header, then the tensors'
/// bytes without gaps. Strict: whatever the format does not allow, or a type other than F32, F16
/// and BF16, throws InvalidInput with one line that names the file, the tensor, what was found and
/// what is allowed. Values may be NaN or infinite.
class Safetensors {
 public:
  /// Reads the file into memory. Throws InvalidInput also when it cannot be read or has more than
  /// 4 GiB.
  [[nodiscard]] static Safetensors from_file(const std::filesystem::path& file);
  /// `where` stands for the file's name in messages.
  [[nodiscard]] static Safetensors from_bytes(std::vector<std::byte> bytes, std::string where);

  /// All entries, in the order of their bytes.
  [[nodiscard]] const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  /// Entry of a name; nullptr when there is none.
  [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const;
  /// The header's free strings.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }
  [[nodiscard]] const std::string& where() const { return where_; }

  /// Row-major values of one of entries(). Exact.
  [[nodiscard]] std::vector<float> values(const SafetensorsEntry& entry) const;

 private:
  Safetensors() = default;

  std::string where_;
  std::vector<std::byte> bytes_;
  std::size_t data_begin_ = 0;  ///< of bytes_
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// A tensor to write, under its name.
struct NamedTensor {
  std::string name;
  const Tensor<double>* tensor = nullptr;
};

/// Writes the tensors as F64, which Safetensors does not read. Throws MachineError where the file
/// cannot be written whole.
void write_safetensors(const std::filesystem::path& file, const std::vector<NamedTensor>& tensors);

}  // namespace attest
