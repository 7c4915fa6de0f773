#pragma once

// Safetensors files for tests, made of values that tell where they came from.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "core/inputs/captured_inputs.hpp"

namespace attest {

using Extents = std::vector<std::int64_t>;

struct NamedValues {
  std::string name;
  Extents shape;
  std::vector<float> values;
};

/// The bytes of a safetensors file; `layout`: what it says about tensors of three dimensions.
inline std::vector<std::byte> file_bytes(const std::vector<NamedValues>& tensors,
                                         const std::string& layout = "") {
  std::string header = "{", data;
  if (!layout.empty()) header += R"("__metadata__":{"attest.layout":")" + layout + "\"},";
  for (const NamedValues& tensor : tensors) {
    const std::size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * 4);
    header += fmt::format(R"("{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}},)",
                          tensor.name, fmt::join(tensor.shape, ","), begin, data.size());
  }
  header.back() = '}';
  const std::uint64_t length = header.size();
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  text += header + data;
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// Values first, first + 1, ... so that each tells where it came from.
inline NamedValues counted(const std::string& name, const Extents& shape, float first = 0) {
  const auto size =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  std::vector<float> values(static_cast<std::size_t>(size));
  std::iota(values.begin(), values.end(), first);
  return {name, shape, std::move(values)};
}

inline std::vector<CapturedLayer> layers_of(const std::vector<NamedValues>& tensors,
                                            const std::string& layout = "") {
  return captured_layers(Safetensors::from_bytes(file_bytes(tensors, layout), "t.safetensors"));
}

inline testing::AssertionResult says(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "message '" << message << "' lacks '" << part << "'";
}

}  // namespace attest
