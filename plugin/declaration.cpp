#include "plugin/declaration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

/// Structs that say that they are larger, and longer arrays and texts, are refused by who checks a
/// descriptor, whatever they hold.
constexpr std::size_t largest_struct = 4096, longest_array = 1024, longest_text = 1024;

/// The struct as far as it says that it reaches, and at least `least` bytes of it.
Json struct_json(const void* given, std::size_t least) {
  std::uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  return bytes_json(given, std::clamp<std::size_t>(size, least, largest_struct));
}

Json text_json(const char* text) {
  return text == nullptr ? Json() : bytes_json(text, strnlen(text, longest_text));
}

template <typename Element>
Json array_json(const Element* elements, std::size_t count) {
  if (elements == nullptr || count > longest_array) return {};
  return bytes_json(elements, count * sizeof(Element));
}

Json texts_json(const char* const* texts, std::size_t count) {
  if (texts == nullptr || count > longest_array) return {};
  Json all = Json::array();
  for (std::size_t i = 0; i < count; ++i) all.push_back(text_json(texts[i]));
  return all;
}

Json plans_json(const AttestPlan* plans, std::size_t count) {
  if (plans == nullptr || count > longest_array) return {};
  Json all = Json::array();
  for (std::size_t i = 0; i < count; ++i) {
    const AttestPlan& plan = plans[i];
    Json fields;
    if (plan.fields != nullptr && plan.field_count <= longest_array) {
      fields = Json::array();
      for (std::size_t f = 0; f < plan.field_count; ++f) {
        fields.push_back({text_json(plan.fields[f].name), plan.fields[f].value});
      }
    }
    all.push_back({plan.field_count, std::move(fields)});
  }
  return all;
}

/// What the struct's own version lacks is 0.
template <typename Struct>
Struct known_part(const void* given) {
  std::uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  Struct copy{};
  std::memcpy(&copy, given, std::min<std::size_t>(size, sizeof copy));
  return copy;
}

Json kernel_json(const AttestKernel* given) {
  if (given == nullptr) return {};
  const auto kernel = known_part<AttestKernel>(given);
  Json says{{"struct", struct_json(given, sizeof(std::uint32_t))},
            {"name", text_json(kernel.name)},
            {"operation", text_json(kernel.operation)},
            {"summary", text_json(kernel.summary)},
            {"unavailable", text_json(kernel.unavailable)},
            {"element_types", array_json(kernel.element_types, kernel.element_type_count)},
            {"partial_types", array_json(kernel.partial_types, kernel.partial_type_count)},
            {"head_dims", array_json(kernel.head_dims, kernel.head_dim_count)},
            {"page_sizes", array_json(kernel.page_sizes, kernel.page_size_count)},
            {"missing_outputs", texts_json(kernel.missing_outputs, kernel.missing_output_count)},
            {"plans", plans_json(kernel.plans, kernel.plan_count)},
            {"precision", Json()}};
  if (kernel.precision != nullptr) {
    says["precision"] = struct_json(kernel.precision, sizeof(std::uint32_t));
  }
  return says;
}

}  // namespace

Json bytes_json(const void* bytes, std::size_t count) {
  const auto* const first = static_cast<const std::uint8_t*>(bytes);
  return std::vector<std::uint8_t>(first, first + count);
}

std::vector<std::byte> bytes_from(const Json& json) {
  std::vector<std::byte> bytes;
  if (!json.is_array()) throw InvalidInput("bytes are no list of numbers");
  bytes.reserve(json.size());
  for (const Json& one : json) {
    if (!one.is_number_unsigned() || one.get<std::uint64_t>() > 255) {
      throw InvalidInput("a byte is no number from 0 to 255");
    }
    bytes.push_back(static_cast<std::byte>(one.get<std::uint64_t>()));
  }
  return bytes;
}

Json declaration_json(const AttestPlugin* given) {
  if (given == nullptr) return {};
  constexpr std::size_t until_version = offsetof(AttestPlugin, version) + sizeof(std::uint32_t);
  Json says{{"struct", struct_json(given, until_version)}, {"kernels", Json()}};
  std::uint32_t version = 0;
  std::memcpy(&version, reinterpret_cast<const char*>(given) + offsetof(AttestPlugin, version),
              sizeof version);
  if (version != ATTEST_PLUGIN_VERSION) return says;
  const auto plugin = known_part<AttestPlugin>(given);
  if (plugin.kernels == nullptr || plugin.kernel_count > longest_array) return says;
  Json& kernels = says["kernels"] = Json::array();
  for (std::size_t i = 0; i < plugin.kernel_count; ++i) {
    kernels.push_back(kernel_json(plugin.kernels[i]));
  }
  return says;
}

Declaration::Declaration(const Json& said, const std::string& where) {
  if (said.is_null()) return;
  try {
    auto* const plugin = reinterpret_cast<AttestPlugin*>(add_struct(said.at("struct")));
    const Json& kernels = said.at("kernels");
    plugin->kernels = nullptr;
    if (kernels.is_array() && kernels.size() == plugin->kernel_count) {
      std::vector<const AttestKernel*> pointers;
      for (const Json& kernel : kernels) pointers.push_back(add_kernel(kernel));
      plugin->kernels = add_list(pointers, pointers.size());
    }
    plugin_ = plugin;
  } catch (const std::exception& error) {
    throw InvalidInput(fmt::format("{}: its process describes it in another way than ours do: {}",
                                   where, printable(error.what(), 200)));
  }
}

std::byte* Declaration::add(std::vector<std::byte> bytes) {
  memory_.push_back(std::move(bytes));
  return memory_.back().data();
}

std::byte* Declaration::add_struct(const Json& given) {
  std::vector<std::byte> bytes = bytes_from(given);
  bytes.resize(largest_struct);
  return add(std::move(bytes));
}

const char* Declaration::add_text(const Json& text) {
  if (text.is_null()) return nullptr;
  std::vector<std::byte> bytes = bytes_from(text);
  bytes.push_back(std::byte{0});
  return reinterpret_cast<const char*>(add(std::move(bytes)));
}

template <typename Element>
const Element* Declaration::add_list(const std::vector<Element>& elements, std::size_t count) {
  if (elements.size() != count) {
    throw InvalidInput(fmt::format("{} elements of {}", elements.size(), count));
  }
  std::vector<std::byte> bytes(count * sizeof(Element) + 1);  // an empty one has an address, too
  if (count > 0) std::memcpy(bytes.data(), elements.data(), count * sizeof(Element));
  return reinterpret_cast<const Element*>(add(std::move(bytes)));
}

template <typename Element>
const Element* Declaration::add_array(const Json& array, std::size_t count) {
  if (array.is_null()) return nullptr;
  const std::vector<std::byte> bytes = bytes_from(array);
  std::vector<Element> elements(bytes.size() / sizeof(Element));
  if (!elements.empty()) {
    std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(Element));
  }
  return add_list(elements, count);
}

const char* const* Declaration::add_texts(const Json& texts, std::size_t count) {
  if (texts.is_null()) return nullptr;
  std::vector<const char*> pointers;
  for (const Json& text : texts) pointers.push_back(add_text(text));
  return add_list(pointers, count);
}

const AttestPlan* Declaration::add_plans(const Json& plans, std::size_t count) {
  if (plans.is_null()) return nullptr;
  std::vector<AttestPlan> all;
  for (const Json& plan : plans) {
    AttestPlan one{.fields = nullptr, .field_count = plan.at(0).get<std::size_t>()};
    if (plan.at(1).is_array()) {
      std::vector<AttestPlanField> fields;
      for (const Json& field : plan.at(1)) {
        fields.push_back({add_text(field.at(0)), field.at(1).get<std::int64_t>()});
      }
      one.fields = add_list(fields, one.field_count);
    }
    all.push_back(one);
  }
  return add_list(all, count);
}

const AttestKernel* Declaration::add_kernel(const Json& said) {
  if (said.is_null()) return nullptr;
  std::byte* const bytes = add_struct(said.at("struct"));
  const auto says = known_part<AttestKernel>(bytes);
  // Behind what the plugin's version has nobody reads.
  auto* const kernel = reinterpret_cast<AttestKernel*>(bytes);
  kernel->name = add_text(said.at("name"));
  kernel->operation = add_text(said.at("operation"));
  kernel->summary = add_text(said.at("summary"));
  kernel->unavailable = add_text(said.at("unavailable"));
  kernel->element_types =
      add_array<AttestFormat>(said.at("element_types"), says.element_type_count);
  kernel->partial_types =
      add_array<AttestFormat>(said.at("partial_types"), says.partial_type_count);
  kernel->head_dims = add_array<std::int64_t>(said.at("head_dims"), says.head_dim_count);
  kernel->page_sizes = add_array<std::int64_t>(said.at("page_sizes"), says.page_size_count);
  kernel->missing_outputs = add_texts(said.at("missing_outputs"), says.missing_output_count);
  kernel->plans = add_plans(said.at("plans"), says.plan_count);
  const Json& precision = said.at("precision");
  kernel->precision = precision.is_null()
                          ? nullptr
                          : reinterpret_cast<const AttestPrecision*>(add_struct(precision));
  return kernel;
}

}  // namespace attest
