#include "plugin/tensors.hpp"

#include <algorithm>

#include "core/attention/operation.hpp"
#include "core/attention/storage.hpp"
#include "plugin/format.hpp"

namespace attest {
namespace {

/// Where the tensor is packed; null where it is not.
const std::int32_t* starts_of(const TensorSpec& tensor, const Arguments& arguments) {
  return tensor.rows == Rows::keys ? arguments.key_starts : arguments.query_starts;
}

/// `name` is a literal, so 0 follows it.
AttestTensor described(std::string_view name, std::uint32_t role, AttestFormat format,
                       const Shape& shape, const Strides& strides) {
  AttestTensor tensor{};
  tensor.size = sizeof tensor;
  tensor.role = role;
  tensor.name = name.data();
  tensor.format = format;
  std::ranges::copy(shape, tensor.shape);
  std::ranges::copy(std::array{strides.batch, strides.head, strides.row, std::int64_t{1}},
                    tensor.strides);
  return tensor;
}

/// A contiguous array of so many rows an entry.
AttestTensor index_array(std::string_view name, const void* data, unsigned code, unsigned bits,
                         std::int64_t entries, std::int64_t rows) {
  const AttestFormat format{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1};
  AttestTensor tensor =
      described(name, ATTEST_INDEX, format, {entries, 1, rows, 1}, {rows, rows, 1});
  tensor.data = const_cast<void*>(data);
  return tensor;
}

}  // namespace

PluginTensors::PluginTensors(const Arguments& arguments) {
  const Problem& p = arguments.problem;
  for_each_tensor(*p.operation, [&](const TensorSpec& spec, auto index) {
    const auto& given = arguments[index];
    AttestTensor tensor =
        described(spec.name, spec.role == TensorRole::input ? ATTEST_INPUT : ATTEST_OUTPUT,
                  to_c(spec.format(p)), stored_shape(spec, p), given.strides);
    tensor.data = const_cast<void*>(static_cast<const void*>(given.data));
    tensor.starts = starts_of(spec, arguments);
    tensor.storage = tensor.starts == nullptr ? ATTEST_STRIDED : ATTEST_PACKED;
    add(tensor);
  });
  const auto add_starts = [&](std::string_view name, const std::int32_t* starts) {
    if (starts != nullptr) add(index_array(name, starts, ATTEST_INT, 32, 1, p.batch + 1));
  };
  add_starts("query_starts", arguments.query_starts);
  add_starts("key_starts", arguments.key_starts);
  if (arguments.key_mask != nullptr) {
    add(index_array("key_mask", arguments.key_mask, ATTEST_UINT, 8, p.batch, p.key_len));
  }
}

void PluginTensors::add(const AttestTensor& tensor) {
  tensors_.at(count_) = tensor;
  pointers_.at(count_) = &tensors_.at(count_);
  ++count_;
}

}  // namespace attest
