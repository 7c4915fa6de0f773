#include "plugin/descriptor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/combine.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/select.hpp"
#include "core/run/registry.hpp"
#include "plugin/arguments.hpp"
#include "plugin/claim.hpp"

namespace attest {
namespace {

constexpr std::size_t most_kernels = 1000;
constexpr std::size_t most_plans = 1000;
constexpr std::size_t longest_name = 64;
constexpr std::size_t longest_summary = 200;
constexpr std::int64_t largest_head_dim = 1024;
constexpr std::int64_t largest_plan_value = 1 << 20;
constexpr std::uint32_t largest_alignment = 256;
constexpr std::int64_t largest_multiple = 4096;
constexpr std::size_t most_page_sizes = 64;

[[noreturn]] void reject(const std::string& where, std::string_view field, const std::string& got,
                         std::string_view allowed) {
  throw InvalidInput(fmt::format("{}: '{}' is {}; allowed: {}", where, field, got, allowed));
}

std::string_view text_of(const char* text, std::size_t limit) {
  return {text, strnlen(text, limit)};
}

std::string name_of_kernel(const char* name, const std::string& where) {
  constexpr std::string_view allowed = "1 to 64 letters, digits, _ - . and /";
  if (name == nullptr) reject(where, "name", "NULL", allowed);
  const std::string_view text = text_of(name, longest_name + 1);
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./").find(c) != std::string_view::npos;
  };
  if (text.empty() || text.size() > longest_name || !std::ranges::all_of(text, is_allowed)) {
    reject(where, "name", fmt::format("'{}'", printable(text, longest_name)), allowed);
  }
  return std::string(text);
}

const Operation& operation_of(const AttestKernel& kernel, const std::string& where) {
  const std::string_view name =
      kernel.operation == nullptr ? "forward" : text_of(kernel.operation, longest_name + 1);
  std::vector<std::string_view> known;
  for (const Operation* operation :
       {&forward_operation, &combine_operation, &backward_operation, &select_operation}) {
    if (operation->name == name) return *operation;
    known.push_back(operation->name);
  }
  reject(where, "operation", fmt::format("'{}'", printable(name, longest_name)),
         fmt::format("{}", fmt::join(known, ", ")));
}

/// The formats of a list, each at most once; `field` is its name, without the s.
std::vector<ElementType> formats_of(std::span<const AttestFormat> formats, std::string_view field,
                                    const std::string& where) {
  std::vector<ElementType> types;
  for (const AttestFormat& format : formats) {
    const std::optional<ElementType> type = element_type_of(format);
    if (!type || std::ranges::find(types, *type) != types.end()) {
      reject(where, fmt::format("{}s[{}]", field, types.size()), to_string(format),
             "ATTEST_FP32, ATTEST_FP16, ATTEST_BF16, each once");
    }
    types.push_back(*type);
  }
  std::ranges::sort(types);
  return types;
}

std::vector<ElementType> element_types_of(const AttestKernel& kernel, const std::string& where) {
  const std::size_t most = all_element_types().size();
  if (kernel.element_types == nullptr || kernel.element_type_count == 0 ||
      kernel.element_type_count > most) {
    reject(where, "element_type_count",
           kernel.element_types == nullptr ? "0: element_types is NULL"
                                           : fmt::format("{}", kernel.element_type_count),
           fmt::format("1 to {}", most));
  }
  return formats_of({kernel.element_types, kernel.element_type_count}, "element_type", where);
}

/// Empty: all.
std::vector<ElementType> partial_types_of(const AttestKernel& kernel, const Operation& operation,
                                          const std::string& where) {
  const std::size_t most =
      operation.name == combine_operation.name ? all_element_types().size() : 0;
  if (kernel.partial_type_count > most ||
      (kernel.partial_type_count > 0 && kernel.partial_types == nullptr)) {
    reject(where, "partial_type_count", fmt::format("{}", kernel.partial_type_count),
           fmt::format("0 to {} for operation '{}', with partial_types not NULL", most,
                       operation.name));
  }
  return formats_of({kernel.partial_types, kernel.partial_type_count}, "partial_type", where);
}

std::vector<Mask> masks_of(std::uint32_t bits, const Operation& operation,
                           const std::string& where) {
  if (operation.name == combine_operation.name && bits != ATTEST_NO_MASK) {
    reject(where, "masks", fmt::format("{:#x}", bits),
           fmt::format("ATTEST_NO_MASK for operation '{}'", operation.name));
  }
  if (bits == 0 || bits >> all_masks().size() != 0) {
    reject(where, "masks", fmt::format("{:#x}", bits),
           "a sum of ATTEST_NO_MASK, ATTEST_CAUSAL_TOP_LEFT, ATTEST_CAUSAL_BOTTOM_RIGHT, "
           "ATTEST_WINDOW_TOP_LEFT, ATTEST_WINDOW_BOTTOM_RIGHT");
  }
  std::vector<Mask> masks;
  for (const Mask mask : all_masks()) {
    if ((bits >> static_cast<unsigned>(mask) & 1U) != 0) masks.push_back(mask);
  }
  return masks;
}

std::vector<std::int64_t> head_dims_of(const AttestKernel& kernel, const std::string& where) {
  std::vector<std::int64_t> dims;
  if (kernel.head_dim_count > 0) {
    if (kernel.head_dims == nullptr || kernel.head_dim_count > largest_head_dim) {
      reject(where, "head_dim_count", fmt::format("{}", kernel.head_dim_count),
             "at most 1024, with head_dims not NULL");
    }
    if (kernel.head_dim_min != 0 || kernel.head_dim_max != 0 || kernel.head_dim_multiple != 0) {
      reject(where, "head_dims", "a list beside a range", "one of them");
    }
    dims.assign(kernel.head_dims, kernel.head_dims + kernel.head_dim_count);
    for (const std::int64_t dim : dims) {
      if (dim < 1 || dim > largest_head_dim || std::ranges::count(dims, dim) > 1) {
        reject(where, "head_dims", fmt::format("{}", dim), "1 to 1024, each once");
      }
    }
    std::ranges::sort(dims);
    return dims;
  }
  const auto value = [&](std::int64_t given, std::int64_t otherwise, std::string_view field) {
    if (given < 0 || given > largest_head_dim) {
      reject(where, field, fmt::format("{}", given), "0 (the default) to 1024");
    }
    return given == 0 ? otherwise : given;
  };
  const std::int64_t least = value(kernel.head_dim_min, 1, "head_dim_min");
  const std::int64_t most = value(kernel.head_dim_max, largest_head_dim, "head_dim_max");
  const std::int64_t multiple = value(kernel.head_dim_multiple, 1, "head_dim_multiple");
  if (least == 1 && most == largest_head_dim && multiple == 1) return {};
  for (std::int64_t dim = least; dim <= most; ++dim) {
    if (dim % multiple == 0) dims.push_back(dim);
  }
  if (dims.empty()) {
    reject(where, "head_dim_min", fmt::format("{}", least),
           fmt::format("a range to head_dim_max {} that holds a multiple of {}", most, multiple));
  }
  return dims;
}

bool flag(std::uint32_t value, std::string_view field, const std::string& where) {
  if (value > 1) reject(where, field, fmt::format("{}", value), "0, 1");
  return value == 1;
}

Features features_of(std::uint32_t bits, const Operation& operation, const std::string& where) {
  if (operation.name == combine_operation.name && (bits & ~ATTEST_NO_QUERIES) != 0) {
    reject(where, "features", fmt::format("{:#x}", bits),
           fmt::format("ATTEST_NO_QUERIES or 0 for operation '{}'", operation.name));
  }
  if (constexpr std::uint32_t of_select = ATTEST_NO_QUERIES | ATTEST_LENGTHS | ATTEST_PADDING;
      operation.name == select_operation.name && (bits & ~of_select) != 0) {
    reject(where, "features", fmt::format("{:#x}", bits),
           fmt::format("a sum of ATTEST_NO_QUERIES, ATTEST_LENGTHS and ATTEST_PADDING for "
                       "operation '{}'",
                       operation.name));
  }
  if (operation.name == backward_operation.name && (bits & ATTEST_VALUES_IN_KEYS) != 0) {
    reject(where, "features", fmt::format("{:#x}", bits),
           "no ATTEST_VALUES_IN_KEYS for operation 'backward': dK and dV would be one tensor");
  }
  if (operation.name != backward_operation.name && (bits & ATTEST_DLSE) != 0) {
    reject(where, "features", fmt::format("{:#x}", bits),
           fmt::format("no ATTEST_DLSE for operation '{}'", operation.name));
  }
  constexpr std::uint32_t of_scores = ATTEST_SINKS | ATTEST_SLOPES | ATTEST_BIAS | ATTEST_PREFIX |
                                      ATTEST_DOCUMENTS | ATTEST_LISTS | ATTEST_DROPOUT;
  constexpr std::uint32_t of_forward = of_scores | ATTEST_GATE | ATTEST_RESIDUAL;
  if (operation.name != forward_operation.name && (bits & of_forward) != 0) {
    reject(where, "features", fmt::format("{:#x}", bits),
           fmt::format("no ATTEST_SINKS to ATTEST_RESIDUAL for operation '{}'", operation.name));
  }
  constexpr std::uint32_t all = ATTEST_SOFTCAP | ATTEST_LENGTHS | ATTEST_PADDING |
                                ATTEST_VALUE_DIM | ATTEST_NO_QUERIES | ATTEST_VALUES_IN_KEYS |
                                ATTEST_DLSE | of_forward;
  if ((bits & ~all) != 0) {
    reject(
        where, "features", fmt::format("{:#x}", bits),
        "a sum of ATTEST_SOFTCAP, ATTEST_LENGTHS, ATTEST_PADDING, ATTEST_VALUE_DIM, "
        "ATTEST_NO_QUERIES, ATTEST_VALUES_IN_KEYS, ATTEST_DLSE, ATTEST_SINKS, ATTEST_SLOPES, "
        "ATTEST_BIAS, ATTEST_PREFIX, ATTEST_DOCUMENTS, ATTEST_LISTS, ATTEST_DROPOUT, ATTEST_GATE, "
        "ATTEST_RESIDUAL");
  }
  return {.no_queries = (bits & ATTEST_NO_QUERIES) != 0,
          .value_dim = (bits & ATTEST_VALUE_DIM) != 0,
          .values_in_keys = (bits & ATTEST_VALUES_IN_KEYS) != 0,
          .softcap = (bits & ATTEST_SOFTCAP) != 0,
          .lengths = (bits & ATTEST_LENGTHS) != 0,
          .padding = (bits & ATTEST_PADDING) != 0,
          .lse_gradient = (bits & ATTEST_DLSE) != 0,
          .sinks = (bits & ATTEST_SINKS) != 0,
          .slopes = (bits & ATTEST_SLOPES) != 0,
          .bias = (bits & ATTEST_BIAS) != 0,
          .prefix = (bits & ATTEST_PREFIX) != 0,
          .documents = (bits & ATTEST_DOCUMENTS) != 0,
          .lists = (bits & ATTEST_LISTS) != 0,
          .dropout = (bits & ATTEST_DROPOUT) != 0,
          .gate = (bits & ATTEST_GATE) != 0,
          .residual = (bits & ATTEST_RESIDUAL) != 0};
}

std::int64_t multiple_of(std::int64_t given, std::string_view field, const std::string& where) {
  if (given < 0 || given > largest_multiple) {
    reject(where, field, fmt::format("{}", given), "0 (the default) to 4096");
  }
  return std::max<std::int64_t>(given, 1);
}

/// Names of the outputs that a kernel does not give. The first output must be there, and so must
/// the one that says how far a list goes.
std::vector<std::string> missing_outputs_of(const AttestKernel& kernel, const Operation& operation,
                                            const std::string& where) {
  const std::size_t needed = operation.name == select_operation.name ? 2 : 1;
  const std::span<const TensorSpec> may_be_missing = operation.outputs().subspan(needed);
  if (kernel.missing_output_count > may_be_missing.size() ||
      (kernel.missing_output_count > 0 && kernel.missing_outputs == nullptr)) {
    reject(where, "missing_output_count", fmt::format("{}", kernel.missing_output_count),
           fmt::format("0 to {}, with missing_outputs not NULL", may_be_missing.size()));
  }
  std::vector<std::string_view> allowed;
  for (const TensorSpec& output : may_be_missing) allowed.push_back(output.name);
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < kernel.missing_output_count; ++i) {
    const char* const given = kernel.missing_outputs[i];
    const std::string_view name = given == nullptr ? "NULL" : text_of(given, longest_name + 1);
    if (std::ranges::find(allowed, name) == allowed.end() ||
        std::ranges::find(missing, name) != missing.end()) {
      reject(where, "missing_outputs", fmt::format("'{}'", printable(name, longest_name)),
             fmt::format("{}, each once", fmt::join(allowed, ", ")));
    }
    missing.emplace_back(name);
  }
  return missing;
}

Dataflow dataflow_of(std::uint32_t given, const std::string& where) {
  switch (given) {
    case ATTEST_DATAFLOW_UNKNOWN:
      return Dataflow::unknown;
    case ATTEST_DATAFLOW_STANDARD:
      return Dataflow::standard;
    case ATTEST_DATAFLOW_KEYS_OUTSIDE:
      return Dataflow::keys_outside;
    case ATTEST_DATAFLOW_QUERIES_OUTSIDE:
      return Dataflow::queries_outside;
    default:
      reject(where, "dataflow", fmt::format("{}", given),
             "ATTEST_DATAFLOW_UNKNOWN to ATTEST_DATAFLOW_QUERIES_OUTSIDE");
  }
}

/// Copies what the kernel does not promise of its answer.
void take_claims(KernelInfo& info, const AttestKernel& kernel, const std::string& where) {
  const auto is_set = [&](std::uint32_t value, std::string_view field) {
    return flag(value, field, where);
  };
  info.features = features_of(kernel.features, *info.operation, where);
  info.is_deterministic = !is_set(kernel.is_not_deterministic, "is_not_deterministic");
  info.is_batch_invariant = !is_set(kernel.is_not_batch_invariant, "is_not_batch_invariant");
  info.depends_on_alignment = is_set(kernel.depends_on_alignment, "depends_on_alignment");
  info.is_query_invariant = is_set(kernel.is_query_invariant, "is_query_invariant");
  if (info.is_query_invariant && info.operation->name == backward_operation.name) {
    reject(where, "is_query_invariant", "1",
           "0 for operation 'backward': dK and dV are sums over the queries");
  }
  info.reads_lengths = is_set(kernel.reads_lengths, "reads_lengths");
  if (info.reads_lengths && !info.features.lengths && kernel.pages == ATTEST_NO_PAGES) {
    reject(where, "reads_lengths", "1", "0; with ATTEST_LENGTHS or pages 1, too");
  }
  info.shares_reference = is_set(kernel.shares_reference, "shares_reference");
  info.missing_outputs = missing_outputs_of(kernel, *info.operation, where);
  info.ignores_hidden_nan = !is_set(kernel.spreads_hidden_nan, "spreads_hidden_nan");
  info.nan_rows_may_have_empty_lse =
      is_set(kernel.nan_rows_may_have_empty_lse, "nan_rows_may_have_empty_lse");
  info.query_len_multiple = multiple_of(kernel.query_len_multiple, "query_len_multiple", where);
  info.key_len_multiple = multiple_of(kernel.key_len_multiple, "key_len_multiple", where);
  info.list_rows_multiple = multiple_of(kernel.list_rows_multiple, "list_rows_multiple", where);
  info.list_keys_multiple = multiple_of(kernel.list_keys_multiple, "list_keys_multiple", where);
}

Pages pages_of(std::uint32_t given, const Operation& operation, const std::string& where) {
  if (given > ATTEST_ONLY_PAGES || (given != 0 && operation.name != forward_operation.name)) {
    reject(where, "pages", fmt::format("{}", given),
           "ATTEST_NO_PAGES; of operation 'forward' ATTEST_PAGES_TOO and ATTEST_ONLY_PAGES, too");
  }
  return static_cast<Pages>(given);
}

std::optional<TableForm> tables_of(const AttestKernel& kernel, const std::string& where) {
  if (kernel.page_tables > ATTEST_CSR_TABLES ||
      (kernel.page_tables != ATTEST_ANY_TABLES && kernel.pages == ATTEST_NO_PAGES)) {
    reject(where, "page_tables", fmt::format("{}", kernel.page_tables),
           "ATTEST_ANY_TABLES; with pages ATTEST_DENSE_TABLES and ATTEST_CSR_TABLES, too");
  }
  if (kernel.page_tables == ATTEST_ANY_TABLES) return std::nullopt;
  return kernel.page_tables == ATTEST_DENSE_TABLES ? TableForm::dense : TableForm::csr;
}

std::vector<std::int64_t> page_sizes_of(const AttestKernel& kernel, const std::string& where) {
  if (kernel.page_size_count > most_page_sizes ||
      (kernel.page_size_count > 0 && kernel.page_sizes == nullptr)) {
    reject(where, "page_size_count", fmt::format("{}", kernel.page_size_count),
           fmt::format("0 to {}, with page_sizes not NULL", most_page_sizes));
  }
  if (kernel.page_size_count > 0 && kernel.pages == ATTEST_NO_PAGES) {
    reject(where, "page_size_count", fmt::format("{}", kernel.page_size_count),
           "0; with pages the number of their sizes");
  }
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < kernel.page_size_count; ++i) {
    const std::int64_t size = kernel.page_sizes[i];
    if (size < 1 || size > largest_multiple || std::ranges::find(sizes, size) != sizes.end()) {
      reject(where, fmt::format("page_sizes[{}]", i), fmt::format("{}", size),
             fmt::format("1 to {}, each once", largest_multiple));
    }
    sizes.push_back(size);
  }
  return sizes;
}

LayoutNeeds layout_needs_of(const AttestKernel& kernel, const Operation& operation,
                            const std::string& where) {
  const auto alignment = [&](std::uint32_t bytes, std::string_view field) -> std::int64_t {
    if (bytes > largest_alignment || (bytes & (bytes - 1)) != 0) {
      reject(where, field, fmt::format("{}", bytes), "0 or a power of two up to 256");
    }
    return std::max<std::int64_t>(bytes, 1);
  };
  return {
      .contiguous_only = flag(kernel.only_contiguous, "only_contiguous", where),
      .pointer_alignment_bytes =
          alignment(kernel.pointer_alignment_bytes, "pointer_alignment_bytes"),
      .stride_alignment_bytes = alignment(kernel.stride_alignment_bytes, "stride_alignment_bytes"),
      .aligns_lone_strides = !flag(kernel.takes_any_lone_stride, "takes_any_lone_stride", where),
      .takes_entry_gaps = flag(kernel.takes_entry_gaps, "takes_entry_gaps", where),
      .takes_broadcast = flag(kernel.takes_broadcast, "takes_broadcast", where),
      .tables = tables_of(kernel, where),
      .pages = pages_of(kernel.pages, operation, where),
      .page_sizes = page_sizes_of(kernel, where)};
}

std::vector<Plan> plans_of(const AttestKernel& kernel, const std::string& where) {
  if (kernel.plans == nullptr || kernel.plan_count == 0 || kernel.plan_count > most_plans) {
    reject(where, "plan_count",
           kernel.plans == nullptr ? "0: plans is NULL" : fmt::format("{}", kernel.plan_count),
           "1 to 1000; a kernel with nothing to choose has one plan without fields");
  }
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < kernel.plan_count; ++i) {
    const Plan plan = plan_of(kernel.plans[i], fmt::format("{}, plan {}", where, i));
    if (std::ranges::find(plans, plan) != plans.end()) {
      reject(where, "plans", fmt::format("'{}' twice", to_string(plan)), "each once");
    }
    plans.push_back(plan);
  }
  return plans;
}

void check_limits(const AttestKernel& kernel, const std::string& where) {
  if (kernel.memory_space > ATTEST_CUDA) {
    reject(where, "memory_space", fmt::format("{}", kernel.memory_space),
           "ATTEST_HOST, ATTEST_CUDA");
  }
  if (kernel.query_len_max < 0) {
    reject(where, "query_len_max", fmt::format("{}", kernel.query_len_max), "0 or more");
  }
  if (kernel.key_len_max < 0) {
    reject(where, "key_len_max", fmt::format("{}", kernel.key_len_max), "0 or more");
  }
  (void)flag(kernel.only_equal_heads, "only_equal_heads", where);
  if (kernel.run == nullptr) reject(where, "run", "NULL", "a function");
}

KernelInfo kernel_of(const AttestKernel& given, const std::string& plugin, std::string where,
                     std::size_t number, const FunctionsOf& functions_of) {
  PluginClaim claim{.kernel = checked_copy(given, where)};
  claim.functions = functions_of(number, claim.kernel);
  const AttestKernel& kernel = claim.kernel;
  claim.name = name_of_kernel(kernel.name, where);
  where = fmt::format("{} ('{}')", where, claim.name);
  check_limits(kernel, where);
  KernelInfo info;
  info.name = claim.name;
  info.summary = printable(
      kernel.summary == nullptr ? "" : text_of(kernel.summary, longest_summary), longest_summary);
  info.source = "plugin";
  info.plugin = plugin;
  info.executor = kernel.memory_space == ATTEST_CUDA ? Executor::gpu : Executor::cpu;
  info.operation = &operation_of(kernel, where);
  info.element_types = element_types_of(kernel, where);
  info.masks = masks_of(kernel.masks, *info.operation, where);
  info.dataflow = dataflow_of(kernel.dataflow, where);
  if (kernel.unavailable != nullptr) {
    info.unavailable = [reason = printable(text_of(kernel.unavailable, longest_summary))] {
      return reason;
    };
  }
  take_claims(info, kernel, where);
  info.layout_needs = layout_needs_of(kernel, *info.operation, where);
  info.head_dims = claim.head_dims = head_dims_of(kernel, where);
  claim.partial_types = partial_types_of(kernel, *info.operation, where);
  claim.plans = plans_of(kernel, where);
  if (kernel.precision != nullptr) claim.precision = checked_copy(*kernel.precision, where);
  claim.precision.size = sizeof(AttestPrecision);
  // Refuses what it says for any problem; refine_precision is asked later.
  (void)roundings_of(claim.precision, {.operation = info.operation}, claim.plans.front(), where);
  add_callbacks(info, std::move(claim));
  return info;
}

}  // namespace

Plan plan_of(const AttestPlan& given, const std::string& where) {
  if (given.field_count > plan_fields().size() ||
      (given.field_count > 0 && given.fields == nullptr)) {
    reject(where, "field_count", fmt::format("{}", given.field_count),
           fmt::format("0 to {}, with fields not NULL", plan_fields().size()));
  }
  Plan plan;
  for (std::size_t i = 0; i < given.field_count; ++i) {
    const AttestPlanField& field = given.fields[i];
    const std::string_view name =
        field.name == nullptr ? "NULL" : text_of(field.name, longest_name + 1);
    const auto known = std::ranges::find(plan_fields(), name, &PlanField::name);
    if (known == plan_fields().end()) {
      std::vector<std::string_view> names;
      for (const PlanField& other : plan_fields()) names.push_back(other.name);
      reject(where, "fields", fmt::format("'{}'", printable(name)),
             fmt::format("{}", fmt::join(names, ", ")));
    }
    if (known->is_choice()) {
      const auto choices = static_cast<std::int64_t>(known->values.size());
      if (field.value < 1 || field.value > choices) {
        reject(where, name, fmt::format("{}", field.value),
               fmt::format("1 to {}, for {}", choices, fmt::join(known->values, ", ")));
      }
    } else if (field.value < 1 || field.value > largest_plan_value) {
      reject(where, name, fmt::format("{}", field.value), "1 to 2^20");
    }
    if (plan.*known->member != 0) reject(where, name, "given twice", "once");
    plan.*known->member = field.value;
  }
  return plan;
}

std::vector<KernelInfo> kernels_of(const AttestPlugin* plugin, const std::string& where) {
  return kernels_of(plugin, where, [](std::size_t /*number*/, const AttestKernel& kernel) {
    return functions_here(kernel);
  });
}

std::vector<KernelInfo> kernels_of(const AttestPlugin* given, const std::string& plugin,
                                   const FunctionsOf& functions_of) {
  const std::string where = fmt::format("plugin '{}'", printable(plugin, 4096));
  if (given == nullptr) throw InvalidInput(where + ": attest_plugin() returned NULL");
  std::uint32_t version = 0;  // before the size, which may mean something else in another version
  std::memcpy(&version, reinterpret_cast<const char*>(given) + offsetof(AttestPlugin, version),
              sizeof version);
  if (version != ATTEST_PLUGIN_VERSION) {
    throw InvalidInput(fmt::format(
        "{}: was built for version {} of attest/plugin.h; this attest speaks version {}", where,
        version, ATTEST_PLUGIN_VERSION));
  }
  const AttestPlugin descriptor = checked_copy(*given, where);
  if (descriptor.kernels == nullptr || descriptor.kernel_count == 0 ||
      descriptor.kernel_count > most_kernels) {
    reject(where, "kernel_count",
           descriptor.kernels == nullptr ? "0: kernels is NULL"
                                         : fmt::format("{}", descriptor.kernel_count),
           "1 to 1000");
  }
  std::vector<KernelInfo> kernels;
  for (std::size_t i = 0; i < descriptor.kernel_count; ++i) {
    const std::string entry = fmt::format("{}, kernel {}", where, i);
    if (descriptor.kernels[i] == nullptr) {
      reject(where, fmt::format("kernels[{}]", i), "NULL", "a kernel");
    }
    KernelInfo kernel = kernel_of(*descriptor.kernels[i], plugin, entry, i, functions_of);
    const auto has_its_name = [&](const KernelInfo& other) { return other.name == kernel.name; };
    if (std::ranges::any_of(kernels, has_its_name) ||
        std::ranges::any_of(all_kernels(), has_its_name)) {
      reject(entry, "name", fmt::format("'{}'", kernel.name), "a name that no other kernel has");
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace attest
