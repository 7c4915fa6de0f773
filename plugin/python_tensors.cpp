#include "plugin/python_tensors.hpp"

#include "core/attention/operation.hpp"

namespace attest {
namespace {

Shape shape_in_memory(const TensorSpec& tensor, const Arguments& a) {
  const Shape shape = tensor.shape(a.problem);
  const bool is_of_keys = tensor.rows == Rows::keys;
  if (is_of_keys && a.page_table.page_size > 0) {
    return {a.page_table.pool_pages, shape[1], a.page_table.page_size, shape[3]};
  }
  const std::int32_t* const starts = is_of_keys ? a.key_starts : a.query_starts;
  if (starts == nullptr || tensor.rows == Rows::neither) return shape;
  return {1, shape[1], starts[a.problem.batch], shape[3]};
}

/// A gate or a residual, whose columns are those of V also where V has one.
bool is_as_wide_as_values(const TensorSpec& tensor, Problem p) {
  const std::int64_t columns = tensor.shape(p)[3];
  p.value_dim = p.output_dim() + 1;
  return tensor.shape(p)[3] != columns;
}

}  // namespace

std::vector<PythonTensor> python_tensors(const Arguments& a) {
  std::vector<PythonTensor> tensors;
  for_each_tensor(*a.problem.operation, [&](const TensorSpec& tensor, auto index) {
    const Shape shape = shape_in_memory(tensor, a);
    if (shape[3] == 0) return;
    const ElementType type = tensor.format(a.problem);
    std::size_t bytes = format_of(type).size_bytes;
    for (const std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
    const void* const here = a[index].data;
    tensors.push_back({.name = std::string(tensor.name),
                       .here = static_cast<std::byte*>(const_cast<void*>(here)),
                       .type = type,
                       .shape = {shape.begin(), shape.end()},
                       .bytes = bytes,
                       .is_output = tensor.role == TensorRole::output});
    const bool is_list = tensor.rows == Rows::neither && tensor.role == TensorRole::output;
    const bool has_columns = tensor.is_strided || tensor.is_of_pairs || is_list;
    if (!has_columns && !is_as_wide_as_values(tensor, a.problem)) tensors.back().shape.pop_back();
  });
  return tensors;
}

std::vector<std::uint8_t> visible_pairs(const Problem& p) {
  std::vector<std::uint8_t> pairs;
  if (p.padding_seed == 0 && p.prefix_seed == 0 && p.document_seed == 0 && p.list_seed == 0) {
    return pairs;
  }
  pairs.reserve(static_cast<std::size_t>(p.batch * p.query_len * p.key_len));
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t query = 0; query < p.query_len; ++query) {
      for (std::int64_t key = 0; key < p.key_len; ++key) {
        pairs.push_back(p.sees(b, query, key) ? 1 : 0);
      }
    }
  }
  return pairs;
}

Json python_indices(const Arguments& a) {
  const std::int64_t batch = a.problem.batch;
  const PageTable& table = a.page_table;
  Json indices = Json::object();
  const auto add = [&](const char* name, const std::int32_t* first, std::int64_t count) {
    if (first != nullptr) indices[name] = std::vector<std::int32_t>(first, first + count);
  };
  add("query_starts", a.query_starts, batch + 1);
  add("key_starts", a.key_starts, batch + 1);
  if (table.page_size == 0) return indices;
  add("key_lengths", table.lengths, batch);
  if (table.starts != nullptr) {
    add("page_starts", table.starts, batch + 1);
    add("pages", table.pages, table.table_size);
    return indices;
  }
  Json& rows = indices["pages"] = Json::array();
  for (std::int64_t b = 0; b < batch; ++b) {
    rows.push_back(std::vector<std::int32_t>(table.of(b), table.of(b) + table.columns));
  }
  return indices;
}

}  // namespace attest
