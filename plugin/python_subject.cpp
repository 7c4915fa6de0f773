#include "plugin/python_subject.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "core/attention/fused_roundings.hpp"
#include "core/attention/select_roundings.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/gradient.hpp"
#include "core/operations/select.hpp"
#include "core/run/registry.hpp"
#include "plugin/judged_subject.hpp"
#include "plugin/python_limits.hpp"
#include "plugin/python_process.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr char of_operation = '@';

[[noreturn]] void reject(const std::string& text, const std::string& what) {
  throw InvalidInput(
      fmt::format("--python '{}': {}", printable(text, 4096), printable(what, 4096)));
}

/// Ranks of a ring have a part each, of few keys, too, which fused_precision() takes for one part:
/// as many parts as keys are more than they merge.
void round_parts(PrecisionPlan& forward, const Problem& p) {
  if (p.element_type == ElementType::fp32) return;  // nothing is rounded
  constexpr std::int64_t few_keys = 16;
  const std::int64_t parts = std::max(forward.splits, std::min(p.key_len, few_keys));
  forward.partial_format = p.element_type;
  forward.blocks = parts;
  forward.splits = parts;
}

/// Ranks round what they have of dQ, and of dK and dV of the keys that visited them.
void round_parts(BackwardRoundings& backward, const Problem& p) {
  backward.dq_part_format = backward.kv_part_format = p.element_type;
}

/// Roundings that a function states, or that are known of its library.
struct Rounding {
  std::optional<double> softcap_error;  ///< over the cap; nothing: as usual
  bool rounds_parts;    ///< partial O, or parts of gradients, are rounded to the inputs' type
  bool fuses_epilogue;  ///< O is rounded once, after its gate and its residual, not before each
};

/// Roundings of a function of which no more is known than that and its operation.
Roundings usual_roundings(const Problem& p, const Rounding& said) {
  const bool rounds_parts = said.rounds_parts;
  const auto with_softcap = [&](auto& roundings) {
    roundings.softcap_error = said.softcap_error.value_or(roundings.softcap_error);
  };
  const Accumulation products = usual_products(p);
  if (p.operation == &backward_operation) {
    BackwardRoundings backward = fused_backward_roundings(p, products);
    if (rounds_parts) round_parts(backward, p);
    with_softcap(backward);
    return backward;
  }
  if (p.operation == &gradient_operation) {
    GradientRoundings both = fused_gradient_roundings(p, products);
    if (rounds_parts) {
      round_parts(both.forward, p);
      round_parts(both.backward, p);
    }
    with_softcap(both.forward);
    with_softcap(both.backward);
    return both;
  }
  if (p.operation == &select_operation) return SelectRoundings{.score = products};
  PrecisionPlan forward = fused_precision(p, products);
  if (rounds_parts) round_parts(forward, p);
  forward.rounds_before_epilogue = has_epilogue(p) && !said.fuses_epilogue;
  with_softcap(forward);
  return forward;
}

template <typename Value>
std::vector<Value> values_of(const Json& names, Value (*from_name)(std::string_view)) {
  std::vector<Value> values;
  for (const Json& name : names) values.push_back(from_name(name.get<std::string>()));
  return values;
}

/// A kernel's claim of the feature of this name.
bool Features::*flag_of(const std::string& name) {
  const auto fields = problem_fields();
  const auto found = std::ranges::find_if(fields, [&](const ProblemField& field) {
    return field.feature && field.feature->name == name;
  });
  if (found == fields.end()) throw std::logic_error("no feature '" + name + "'");
  return found->feature->flag;
}

KernelInfo kernel_of(const std::string& text, const std::shared_ptr<PythonProcess>& subject) {
  const Json& says = subject->description();
  KernelInfo kernel{.operation = &operation_from_name(says.at("operation").get<std::string>()),
                    .name = says.at("name").get<std::string>(),
                    .summary = printable(says.at("summary").get<std::string>(), 120),
                    .source = text,
                    .executor = Executor::cpu,
                    .plugin = text};
  kernel.element_types = values_of(says.at("types"), element_type_from_name);
  kernel.masks = values_of(says.at("masks"), mask_from_name);
  kernel.head_dims = says.at("head_dims").get<std::vector<std::int64_t>>();
  kernel.query_len_multiple = says.at("query_len_multiple").get<std::int64_t>();
  kernel.key_len_multiple = says.at("key_len_multiple").get<std::int64_t>();
  kernel.is_deterministic = says.at("deterministic").get<bool>();
  kernel.is_batch_invariant = says.at("batch_invariant").get<bool>();
  kernel.ignores_hidden_nan = says.at("ignores_hidden_nan").get<bool>();
  kernel.missing_outputs = says.at("missing").get<std::vector<std::string>>();
  for (const Json& name : says.at("features")) {
    kernel.features.*flag_of(name.get<std::string>()) = true;
  }
  kernel.layout_needs.contiguous_only = true;
  if (says.contains("pages")) {
    kernel.layout_needs.pages = Pages::always;
    kernel.layout_needs.tables = says["pages"] == "csr" ? TableForm::csr : TableForm::dense;
    kernel.layout_needs.page_sizes = says.at("page_sizes").get<std::vector<std::int64_t>>();
  }
  Rounding said{.softcap_error = std::nullopt,
                .rounds_parts = says.at("rounds_parts").get<bool>(),
                .fuses_epilogue = says.at("fuses_epilogue").get<bool>()};
  if (says.contains("softcap_error")) said.softcap_error = says["softcap_error"].get<double>();
  kernel.precision = [said](const Problem& p, const Plan&) { return usual_roundings(p, said); };
  kernel.plans = [](const Problem&) { return std::vector<Plan>{Plan{}}; };
  kernel.unsupported = [takes = python_limits(says)](const Problem& p, const Plan&) {
    return takes.why_not(p);
  };
  kernel.launch = [subject, library = says.at("library").get<std::string>()](
                      const Arguments& arguments, Device&) {
    subject->launch(arguments);
    note_library(library);
  };
  return kernel;
}

/// The file's absolute path, so that a counterexample is replayed from anywhere.
std::string absolute(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const fs::path file = text.substr(0, colon);
  if (file.extension() != ".py" && file.extension() != ".so") return text;
  std::error_code error;
  const fs::path found = fs::canonical(file, error);
  if (error) reject(text, fmt::format("{}: {}", file.string(), error.message()));
  return found.string() + text.substr(colon);
}

}  // namespace

bool is_python_subject(std::string_view text) {
  if (is_judged_subject(text)) return true;
  text = text.substr(0, text.rfind(of_operation));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) return false;
  return std::ranges::all_of(text.substr(colon + 1), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  });
}

std::string for_operation(const std::string& text, const std::string& operation) {
  if (operation.empty() || text.find(of_operation, text.rfind(':')) != std::string::npos) {
    return text;
  }
  return text + of_operation + operation;
}

const LoadedPlugin& load_python_subject(const std::string& given, bool says_how) {
  if (is_judged_subject(given)) return load_judged_subject(given);
  static std::deque<LoadedPlugin> loaded;  // keeps references good
  const std::string text = absolute(given);
  for (const LoadedPlugin& one : loaded) {
    if (one.path == text) return one;
  }
  std::shared_ptr<PythonProcess> subject;
  try {
    subject = std::make_shared<PythonProcess>(text);
  } catch (const MachineError& error) {
    std::string what = error.what();
    if (what.starts_with(text + ": ")) what.erase(0, text.size() + 2);
    if (what.find("ModuleNotFoundError") != std::string::npos) {
      what += "; ATTEST_PYTHON names the Python that has it";
    }
    reject(given, what);
  }
  const KernelInfo kernel = kernel_of(text, subject);
  if (find_kernel(kernel.name, kernel.executor) != nullptr) {
    reject(given, fmt::format("a kernel '{}' is there already; allowed: another name, by "
                              "@attest_kernels.kernel(name=...)",
                              kernel.name));
  }
  if (says_how) {
    fmt::print(stderr, "attest: {}: taken as {}; {}\n", kernel.name,
               subject->description().at("convention").get<std::string>(),
               subject->description().at("library").get<std::string>());
  }
  loaded.push_back({.path = text, .kernels = {kernel.name}});
  add_kernel(kernel);
  return loaded.back();
}

}  // namespace attest
