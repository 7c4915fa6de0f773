#include "plugin/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "core/attention/operation.hpp"
#include "core/attention/problem_field.hpp"
#include "core/attention/storage.hpp"

// Where plugin.h keeps the fields of a Problem: the only place that says so.

namespace attest {
namespace {

/// Where the tensor is packed; null where it is not.
const std::int32_t* starts_of(const TensorSpec& tensor, const Arguments& arguments) {
  if (tensor.rows == Rows::neither) return nullptr;
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

/// A tensor of pairs has the shape that every entry and head would see, and strides of 0 where they
/// share it.
void say_shared(AttestTensor& tensor, const Problem& problem) {
  const std::array<std::int64_t, 2> whole{problem.batch, problem.query_heads};
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (tensor.shape[i] == whole[i]) continue;
    tensor.shape[i] = whole[i];
    tensor.strides[i] = 0;
  }
}

using Value = decltype(FieldForKernels::value);

template <auto member>
void number(AttestProblem& problem, const Value& value) {
  using Member = std::remove_reference_t<decltype(problem.*member)>;
  problem.*member = std::visit([](auto x) { return static_cast<Member>(x); }, value);
}

/// A choice of which the first is none.
template <auto member>
void is_set(AttestProblem& problem, const Value& value) {
  problem.*member = std::get<std::int64_t>(value) != 0 ? 1 : 0;
}

/// A choice of which kernels claim sets.
template <auto member>
void bit(AttestProblem& problem, const Value& value) {
  problem.*member = 1U << static_cast<unsigned>(std::get<std::int64_t>(value));
}
static_assert(1U << static_cast<unsigned>(Mask::window_bottom_right) == ATTEST_WINDOW_BOTTOM_RIGHT);

template <auto member>
void format(AttestProblem& problem, const Value& value) {
  problem.*member = to_c(static_cast<ElementType>(std::get<std::int64_t>(value)));
}

/// AttestKernel says it, or the format and the shape of a tensor.
void nowhere(AttestProblem& /*problem*/, const Value& /*value*/) {}

struct Place {
  std::string_view field;  ///< FieldForKernels::name
  void (*put)(AttestProblem&, const Value&);
};
using P = AttestProblem;
constexpr std::array<Place, 42> places{{{"operation", nowhere},
                                        {"shared_keys", number<&P::shared_keys>},
                                        {"batch", number<&P::batch>},
                                        {"query_heads", number<&P::query_heads>},
                                        {"kv_heads", number<&P::kv_heads>},
                                        {"query_len", number<&P::query_len>},
                                        {"key_len", number<&P::key_len>},
                                        {"head_dim", number<&P::head_dim>},
                                        {"value_dim", number<&P::value_dim>},
                                        {"values", number<&P::values_in_keys>},
                                        {"mask", bit<&P::mask>},
                                        {"window_left", number<&P::window_left>},
                                        {"window_right", number<&P::window_right>},
                                        {"element_type", format<&P::element_type>},
                                        {"scale", number<&P::scale>},
                                        {"softcap", number<&P::softcap>},
                                        {"lengths", number<&P::has_lengths>},
                                        {"padding", number<&P::has_padding>},
                                        {"parts", number<&P::parts>},
                                        {"partial_type", format<&P::partial_type>},
                                        {"dlse", number<&P::has_dlse>},
                                        {"q_code", nowhere},
                                        {"k_code", nowhere},
                                        {"v_code", nowhere},
                                        {"q_scales", nowhere},
                                        {"k_scales", nowhere},
                                        {"v_scales", nowhere},
                                        {"scale_format", nowhere},
                                        {"top_k", number<&P::top_k>},
                                        {"sinks", number<&P::has_sinks>},
                                        {"slopes", number<&P::has_slopes>},
                                        {"bias", is_set<&P::has_bias>},
                                        {"prefix", number<&P::has_prefix>},
                                        {"documents", number<&P::has_documents>},
                                        {"lists", number<&P::has_lists>},
                                        {"list_rows", number<&P::list_rows>},
                                        {"list_keys", number<&P::list_keys>},
                                        {"dropout", number<&P::dropout>},
                                        {"dropout_seed", number<&P::dropout_seed>},
                                        {"dropout_offset", number<&P::dropout_offset>},
                                        {"gate", is_set<&P::has_gate>},
                                        {"residual", is_set<&P::has_residual>}}};

}  // namespace

PluginTensors::PluginTensors(const Arguments& arguments) {
  const Problem& p = arguments.problem;
  for_each_tensor(*p.operation, [&](const TensorSpec& spec, auto index) {
    if (!has_tensor(p, index)) return;
    const auto& given = arguments[index];
    const PageTable& table = arguments.page_table;
    const bool is_paged = spec.rows == Rows::keys && table.page_size > 0;
    const Shape whole = spec.shape(p);
    const Shape shape = is_paged ? Shape{table.pool_pages, whole[1], table.page_size, whole[3]}
                                 : stored_shape(spec, p, {}, arguments.entry_gap);
    AttestTensor tensor =
        described(spec.name, spec.role == TensorRole::input ? ATTEST_INPUT : ATTEST_OUTPUT,
                  to_c(spec.format(p)), shape, given.strides);
    tensor.data = const_cast<void*>(static_cast<const void*>(given.data));
    // A gradient has the elements that are written, each once.
    if (spec.is_of_pairs && spec.role == TensorRole::input) say_shared(tensor, p);
    tensor.starts = is_paged ? nullptr : starts_of(spec, arguments);
    tensor.storage = is_paged                   ? ATTEST_PAGED
                     : tensor.starts != nullptr ? ATTEST_PACKED
                                                : ATTEST_STRIDED;
    add(tensor);
  });
  const auto add_starts = [&](std::string_view name, const std::int32_t* starts) {
    if (starts != nullptr) add(index_array(name, starts, ATTEST_INT, 32, 1, p.batch + 1));
  };
  add_starts("query_starts", arguments.query_starts);
  add_starts("key_starts", arguments.key_starts);
  const auto add_lengths = [&](std::string_view name, const std::int32_t* lengths) {
    if (lengths != nullptr) add(index_array(name, lengths, ATTEST_INT, 32, 1, p.batch));
  };
  add_lengths("query_lengths", arguments.query_lengths);
  add_lengths("key_lengths", arguments.key_lengths);
  add_page_table(arguments.page_table, p.batch);
  if (arguments.key_mask != nullptr) {
    add(index_array("key_mask", arguments.key_mask, ATTEST_UINT, 8, p.batch, p.key_len));
  }
  add_lengths("prefix_lengths", arguments.prefix_lengths);
  const auto add_rows = [&](std::string_view name, const std::int32_t* data, std::int64_t rows) {
    if (data != nullptr) add(index_array(name, data, ATTEST_INT, 32, p.batch, rows));
  };
  add_rows("query_documents", arguments.query_documents, p.query_len);
  add_rows("key_documents", arguments.key_documents, p.key_len);
  add_key_lists(arguments.key_lists, p.batch);
}

void PluginTensors::add_key_lists(const KeyLists& lists, std::int64_t batch) {
  if (!lists.is_used()) return;
  add(index_array("list_counts", lists.counts, ATTEST_INT, 32, batch, lists.lists));
  AttestTensor items = index_array("list_items", lists.items, ATTEST_INT, 32, batch, lists.lists);
  items.shape[3] = lists.room;
  items.strides[0] = items.strides[1] = lists.lists * lists.room;
  items.strides[2] = lists.room;
  add(items);
}

void PluginTensors::add_page_table(const PageTable& table, std::int64_t batch) {
  if (table.page_size == 0) return;
  const auto add_numbers = [&](std::string_view name, const std::int32_t* data,
                               std::int64_t entries, std::int64_t rows) {
    add(index_array(name, data, ATTEST_INT, 32, entries, rows));
  };
  if (table.starts == nullptr) {
    add_numbers("page_table", table.pages, batch, table.columns);
    add_numbers("key_lengths", table.lengths, 1, batch);
  } else {
    add_numbers("page_table", table.pages, 1, table.table_size);
    add_numbers("page_starts", table.starts, 1, batch + 1);
    add_numbers("last_page_lengths", table.lengths, 1, batch);
  }
}

void PluginTensors::add(const AttestTensor& tensor) {
  tensors_.at(count_) = tensor;
  pointers_.at(count_) = &tensors_.at(count_);
  ++count_;
}

AttestProblem to_c(const Problem& problem, void* user_data) {
  AttestProblem result{};
  result.size = sizeof result;
  result.user_data = user_data;
  for (const ProblemField& field : problem_fields()) {
    const FieldForKernels told = for_kernels(field, problem);
    const auto* const place = std::ranges::find(places, told.name, &Place::field);
    if (place == places.end()) {
      throw std::logic_error("plugin.h has no place for the field " + std::string(told.name));
    }
    place->put(result, told.value);
  }
  return result;
}

AttestFormat to_c(ElementType type) {
  switch (type) {
    case ElementType::fp32:
      return ATTEST_FP32;
    case ElementType::fp16:
      return ATTEST_FP16;
    case ElementType::bf16:
      return ATTEST_BF16;
    case ElementType::e4m3:
      return ATTEST_E4M3;
    case ElementType::e5m2:
      return ATTEST_E5M2;
    case ElementType::int8:
      return ATTEST_INT8;
    case ElementType::e2m1:  // no plugin declares codes yet; these are DLPack's numbers
      return {17, 4, 1};
    case ElementType::int4:
      return {ATTEST_INT, 4, 1};
    case ElementType::ue8m0:
      return {14, 8, 1};
    case ElementType::int32:
      return {ATTEST_INT, 32, 1};
  }
  throw std::logic_error("a format without a code in plugin.h");
}

std::optional<ElementType> element_type_of(const AttestFormat& format) {
  for (const ElementType type : all_element_types()) {
    if (is_same(to_c(type), format)) return type;
  }
  return std::nullopt;
}

bool is_same(const AttestFormat& a, const AttestFormat& b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

std::string to_string(const AttestFormat& format) {
  return fmt::format("{{code {}, {} bits, {} lanes}}", format.code, format.bits, format.lanes);
}

}  // namespace attest
