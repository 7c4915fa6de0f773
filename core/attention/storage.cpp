#include "core/attention/storage.hpp"

#include <algorithm>

namespace attest {
namespace {

/// Calls copy(entry, head, row, row of the packed tensor) for every row that exists.
template <typename Copy>
void for_each_row(const Shape& shape, const Packed& packed, const Copy& copy) {
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    const std::int64_t first = packed.starts[static_cast<std::size_t>(b)];
    const std::int64_t rows = packed.rows_of(b);
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < rows; ++n) copy(b, h, n, first + n);
    }
  }
}

/// Calls copy(entry, head, row, page of the pool, slot) for every row that exists.
template <typename Copy>
void for_each_row(const Shape& shape, const PageMap& map, const Copy& copy) {
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    const std::vector<std::int32_t>& pages = map.pages[static_cast<std::size_t>(b)];
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < map.lengths[static_cast<std::size_t>(b)]; ++n) {
        copy(b, h, n, pages[static_cast<std::size_t>(n / map.page_size)], n % map.page_size);
      }
    }
  }
}

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // clang before 17 does not find it by itself

}  // namespace

Packed packed_entries(const Problem& problem, Rows rows, std::int64_t entry_gap) {
  Packed packed{rows == Rows::keys ? key_starts(problem) : query_starts(problem)};
  if (entry_gap == 0) return packed;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    packed.lengths.push_back(static_cast<std::int32_t>(
        rows == Rows::keys ? problem.key_len_of(b) : problem.query_len_of(b)));
    packed.starts[static_cast<std::size_t>(b) + 1] +=
        static_cast<std::int32_t>((b + 1) * entry_gap);
  }
  return packed;
}

Storage storage_of(const TensorSpec& tensor, const Problem& problem, const Paging& paging,
                   std::int64_t entry_gap) {
  if (tensor.rows == Rows::keys && paging.is_used()) return Paged{page_map(problem, paging)};
  if (problem.length_seed == 0 || tensor.rows == Rows::neither) return Strided{};
  return packed_entries(problem, tensor.rows, entry_gap);
}

Shape stored_shape(const Storage& storage, const Shape& shape) {
  return std::visit(
      Overloaded{[&](const Strided&) { return shape; },
                 [&](const Packed& packed) {
                   return Shape{1, shape[1], packed.starts.back(), shape[3]};
                 },
                 [&](const Paged& paged) {
                   return Shape{paged.map.pool_pages, shape[1], paged.map.page_size, shape[3]};
                 }},
      storage);
}

Shape in_units(const Shape& stored, ElementType type) {
  return {stored[0], stored[1], stored[2], units_of(type, stored[3])};
}

Shape stored_shape(const TensorSpec& tensor, const Problem& problem, const Paging& paging,
                   std::int64_t entry_gap) {
  const Storage storage = storage_of(tensor, problem, paging, entry_gap);
  return in_units(stored_shape(storage, tensor.shape(problem)), tensor.format(problem));
}

Shape stored_shape(const Problem& problem, InputIndex index, const Paging& paging) {
  return stored_shape((*problem.operation)[index], problem, paging);
}

Shape stored_shape(const Problem& problem, OutputIndex index, const Paging& paging) {
  return stored_shape((*problem.operation)[index], problem, paging);
}

Tensor<float> stored(const Storage& storage, const Tensor<float>& tensor, float unused) {
  return std::visit(
      Overloaded{[&](const Strided&) { return tensor; },
                 [&](const Packed& packed) {
                   Tensor<float> result(stored_shape(storage, tensor.shape()), unused);
                   for_each_row(tensor.shape(), packed, [&](auto b, auto h, auto n, auto row) {
                     std::ranges::copy(tensor.row(b, h, n), result.row(0, h, row).begin());
                   });
                   return result;
                 },
                 [&](const Paged& paged) {
                   Tensor<float> result(stored_shape(storage, tensor.shape()), unused);
                   for_each_row(tensor.shape(), paged.map,
                                [&](auto b, auto h, auto n, auto page, auto slot) {
                                  std::ranges::copy(tensor.row(b, h, n),
                                                    result.row(page, h, slot).begin());
                                });
                   return result;
                 }},
      storage);
}

std::vector<bool> used_steps(const Storage& storage) {
  const Paged* paged = std::get_if<Paged>(&storage);
  if (paged == nullptr) return {};
  std::vector<bool> used(static_cast<std::size_t>(paged->map.pool_pages));
  for (const auto& pages : paged->map.pages) {
    for (const std::int32_t page : pages) used[static_cast<std::size_t>(page)] = true;
  }
  return used;
}

std::vector<bool> used_rows(const Storage& storage) {
  const Packed* packed = std::get_if<Packed>(&storage);
  if (packed == nullptr || packed->lengths.empty()) return {};
  std::vector<bool> used(static_cast<std::size_t>(packed->starts.back()));
  for (std::size_t b = 0; b < packed->lengths.size(); ++b) {
    std::fill_n(used.begin() + packed->starts[b], packed->lengths[b], true);
  }
  return used;
}

Tensor<float> restored(const Storage& storage, const Tensor<float>& tensor, const Shape& shape,
                       float absent) {
  return std::visit(
      Overloaded{[&](const Strided&) { return tensor; },
                 [&](const Packed& packed) {
                   Tensor<float> result(shape, absent);
                   for_each_row(shape, packed, [&](auto b, auto h, auto n, auto row) {
                     std::ranges::copy(tensor.row(0, h, row), result.row(b, h, n).begin());
                   });
                   return result;
                 },
                 [&](const Paged& paged) {
                   Tensor<float> result(shape, absent);
                   for_each_row(
                       shape, paged.map, [&](auto b, auto h, auto n, auto page, auto slot) {
                         std::ranges::copy(tensor.row(page, h, slot), result.row(b, h, n).begin());
                       });
                   return result;
                 }},
      storage);
}

}  // namespace attest
