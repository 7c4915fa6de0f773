#include "experiments/errors/error_axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "core/attention/common_operation.hpp"
#include "core/base/error.hpp"
#include "core/base/glob.hpp"
#include "core/base/text.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"
#include "core/run/asked_paging.hpp"
#include "core/run/default_plan.hpp"
#include "core/run/default_problem.hpp"
#include "core/run/registry.hpp"
#include "core/run/tuning_key.hpp"

namespace attest {
namespace {

/// `a{1,2}b{x,y}` -> `a1bx`, `a1by`, `a2bx`, `a2by`, as a shell would without quotes; text without
/// braces is itself. Throws InvalidInput that names `option` for a brace without its partner or
/// inside another.
std::vector<std::string> expand_braces(const std::string& option, const std::string& text) {
  const std::size_t open = text.find_first_of("{}");
  if (open == std::string::npos) return {text};
  const std::size_t close = text.find_first_of("{}", open + 1);
  if (text[open] != '{' || close == std::string::npos || text[close] != '}') {
    throw InvalidInput(
        fmt::format("{} '{}' has a brace without its partner, or one inside another; "
                    "allowed: lists such as n{{64,128}}",
                    option, printable(text)));
  }
  const std::vector<std::string> tails = expand_braces(option, text.substr(close + 1));
  std::vector<std::string> all;
  for (std::size_t begin = open + 1; begin <= close;) {
    const std::size_t end = std::min(text.find(',', begin), close);
    const std::string head = text.substr(0, open) + text.substr(begin, end - begin);
    for (const std::string& tail : tails) all.push_back(head + tail);
    begin = end + 1;
  }
  return all;
}

std::vector<std::string> expand_braces(const std::string& option,
                                       const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const std::string& text : texts) {
    for (std::string& one : expand_braces(option, text)) all.push_back(std::move(one));
  }
  return all;
}

/// `a,b:{1,2}` -> `a`, `b:{1,2}`: a comma inside braces stands between values, any other between
/// names.
std::vector<std::string> single_names(const std::vector<std::string>& lists) {
  std::vector<std::string> names;
  for (const std::string& list : lists) {
    names.emplace_back();
    bool is_in_braces = false;
    for (const char c : list) {
      if (c == '{' || c == '}') is_in_braces = c == '{';
      c == ',' && !is_in_braces ? (void)names.emplace_back() : names.back().push_back(c);
    }
  }
  return names;
}

/// `FAMILY` or `FAMILY:MAGNITUDE`.
InputSpec input_spec(const std::string& text, std::uint64_t seed) {
  const std::size_t colon = text.find(':');
  InputSpec spec{.family = text.substr(0, colon), .seed = seed};
  spec.magnitude = input_family(spec.family).magnitudes.front();
  if (colon == std::string::npos) return spec;
  const char* const begin = text.c_str() + colon + 1;
  const char* const end = text.c_str() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, spec.magnitude);
  if (error != std::errc() || stop != end || !(spec.magnitude > 0)) {
    throw InvalidInput(fmt::format("--family has magnitude '{}'; allowed: a number above 0",
                                   printable(text.substr(colon + 1))));
  }
  return spec;
}

/// The problem, and the element type if its text names one: without, each kernel brings its own.
struct AskedProblem {
  Problem problem;
  std::optional<ElementType> type;
};
AskedProblem asked_problem(const std::string& text, const Operation& operation) {
  AskedProblem asked{.problem = problem_of(operation, text), .type = named_element_type(text)};
  if (asked.problem.query_len == 0) {
    throw InvalidInput(
        fmt::format("--problem '{}' has no rows; allowed: at least one", printable(text)));
  }
  if (asked.problem.length_seed != 0) {
    throw InvalidInput(
        fmt::format("--problem '{}' has lengths of single entries: rows that do not exist would "
                    "count as right; allowed: without",
                    printable(text)));
  }
  return asked;
}

/// A problem, and the kernels that are asked about it.
struct Questions {
  AskedProblem asked;
  std::vector<const KernelInfo*> kernels;
  bool is_default = false;  ///< nobody named the problem
};

/// Every problem that was named, for all kernels. Where none was: the usual ones, and for kernels
/// that do not take one what they take in its place.
std::vector<Questions> questions_of(const ErrorsAxes& axes, const ErrorsDefaults& defaults,
                                    const std::vector<const KernelInfo*>& kernels) {
  std::vector<Questions> all;
  for (const std::string& text : expand_braces("--problem", axes.problems)) {
    all.push_back({.asked = asked_problem(text, *axes.operation), .kernels = kernels});
  }
  if (!all.empty()) return all;
  for (const std::string& text : defaults.problems) {
    const AskedProblem usual = asked_problem(text, *axes.operation);
    for (const KernelInfo* kernel : kernels) {
      Problem problem = default_problem(*kernel, usual.problem);
      problem.element_type = usual.problem.element_type;  // each kernel brings its own
      const auto same = std::ranges::find(
          all, problem, [](const Questions& questions) { return questions.asked.problem; });
      if (same != all.end()) {
        same->kernels.push_back(kernel);
      } else {
        all.push_back(
            {.asked = {.problem = problem, .type = {}}, .kernels = {kernel}, .is_default = true});
      }
    }
  }
  return all;
}

/// True if the family that a text of the defaults names has inputs for the problem.
bool fits(const std::string& text, const Problem& problem) {
  const InputFamily& family = input_family(text.substr(0, text.find(':')));
  return !family.unsupported || !family.unsupported(problem);
}

/// The families that a text means: a glob takes those that fit the problem. A magnitude may follow.
std::vector<InputSpec> asked_inputs(const std::string& text, const Problem& problem,
                                    std::uint64_t seed) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string glob = text.substr(0, colon);
  if (!is_pattern(glob)) {
    const InputSpec spec = input_spec(text, seed);
    const InputFamily& chosen = input_family(spec.family);
    if (!chosen.serves(*problem.operation)) {
      throw InvalidInput(fmt::format("--family '{}' fills inputs of {}; allowed: families of {}",
                                     printable(spec.family), chosen.operation->name,
                                     problem.operation->name));
    }
    if (chosen.unsupported) {
      if (const auto reason = chosen.unsupported(problem)) throw InvalidInput(*reason);
    }
    return {spec};
  }
  std::vector<InputSpec> found;
  for (const InputFamily* one : families_of(*problem.operation)) {
    const InputFamily& family = *one;
    if (!matches_glob(family.name, glob)) continue;
    if (family.unsupported && family.unsupported(problem)) continue;
    found.push_back(input_spec(family.name + text.substr(colon), seed));
  }
  if (found.empty()) {
    throw InvalidInput(fmt::format("--family '{}' matches no family that fits '{}'",
                                   printable(text), to_string(problem)));
  }
  return found;
}

Plan with_fields_of(Plan plan, const Plan& given) {
  for (const PlanField& field : plan_fields()) {
    if (given.*field.member != 0) plan.*field.member = given.*field.member;
  }
  return plan;
}

/// The kernel's default Plan with the fields that a text names; where it does not run, the first
/// Plan with these fields that the kernel offers. Nothing, and why in `reason`, where there is
/// none.
std::optional<Plan> plan_for(const KernelInfo& kernel, const Case& c, const std::string& text,
                             std::string_view gpu, std::string& reason) {
  const auto choice = default_plan(kernel, c.problem, gpu);
  if (!choice) {
    reason = fmt::format("{}: no plan for this problem", kernel.name);
    return {};
  }
  const Plan given = text.empty() ? Plan{} : plan_from_string(text);
  std::vector<Plan> plans = kernel.plans(c.problem);
  std::erase_if(plans, [&](const Plan& plan) { return with_fields_of(plan, given) != plan; });
  plans.insert(plans.begin(), with_fields_of(choice->plan, given));
  for (const Plan& plan : plans) {
    Case with_plan = c;
    with_plan.plan = plan;
    const auto why = why_unsupported(kernel, with_plan);
    if (!why) return plan;
    if (reason.empty()) reason = *why;
  }
  return {};
}

bool are_codes(const ErrorsAxes& axes) {
  return axes.operation == &quantised_operation;
}

/// True if a family gives the same inputs whatever the seed. One of another operation, which ours
/// extends, leaves some to be drawn.
bool is_fixed(const ErrorsAxes& axes, const std::string& family) {
  return std::ranges::count(axes.fixed_families, family) != 0 &&
         (input_family(family).operation == axes.operation || are_codes(axes));
}

/// Throws InvalidInput where no input was saved by the operation before.
void require_saved(const ErrorsAxes& axes) {
  if (axes.truth != Truth::exact_saved) return;
  if (axes.operation->extends != nullptr && !are_codes(axes)) return;
  throw InvalidInput(
      fmt::format("--exact-saved: no input of {} is the output of another operation; allowed: with "
                  "--operation {}",
                  axes.operation->name, backward_operation.name));
}

/// Throws InvalidInput where codes are held against numbers that there never were, or keys of codes
/// would change places without their scales.
void require_numbers(const ErrorsAxes& axes, const InputSpec& inputs, KeyOrder order) {
  if (!are_codes(axes)) return;
  if (order != KeyOrder::drawn) {
    throw InvalidInput(fmt::format(
        "--key-order {}: keys of codes keep their places; allowed: drawn", name_of(order)));
  }
  if (axes.truth != Truth::unrounded || !input_family(inputs.family).is_complete) return;
  throw InvalidInput(
      fmt::format("--unrounded: inputs {} are codes that no numbers became; allowed: families of "
                  "numbers",
                  printable(inputs.family)));
}

/// Throws InvalidInput when nothing would be measured.
void require_any(const std::vector<ErrorsRow>& rows) {
  if (rows.empty()) throw InvalidInput("--problem: no selected kernel takes its element type");
  if (std::ranges::any_of(rows, [](const ErrorsRow& row) { return row.left_out.empty(); })) return;
  throw InvalidInput(
      fmt::format("no selected kernel can run the problem; {}", rows.front().left_out));
}

}  // namespace

const std::vector<ErrorsDefaults>& all_errors_defaults() {
  static const std::vector<ErrorsDefaults> all{
      {&forward_operation,
       "k7_shuffled_rows,fa2_mma,emulated_fma,emulated_mma_sm90",
       {"b1 h4 n512 d64"},
       {"normal", "outliers", "real"}},
      {&backward_operation,
       "backward_tiled,bwd_simple,bwd_wgmma",
       {"b1 h2 n256 d64"},
       {"normal", "gradient_mean_kv:3", "real"}},
      {&quantised_operation,
       "quantised_rows,decode_codes,fp8_wgmma",
       {"b1 h2 n256 d64", "b1 h2 n256 d64 qcode_e4m3 qscales_head"},
       {"normal", "outliers", "real"}}};
  return all;
}

const ErrorsDefaults& errors_defaults(const Operation& operation) {
  std::string names;
  for (const ErrorsDefaults& one : all_errors_defaults()) {
    if (one.operation == &operation) return one;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", one.operation->name);
  }
  throw InvalidInput(
      fmt::format("operation {}: its errors are not measured; allowed: {}", operation.name, names));
}

const Operation& operation_of(const std::vector<std::string>& problems) {
  std::vector<Problem> asked;
  for (const std::string& text : expand_braces("--problem", problems)) {
    asked.push_back(problem_from_string(text));
  }
  return common_operation(asked);
}

Device& Devices::of(const KernelInfo& kernel) {
  auto& device = devices_[kernel.executor];
  if (!device) device = make_device(kernel.executor);
  return *device;
}

std::vector<ErrorsRow> rows_of(const ErrorsAxes& axes,
                               const std::vector<const KernelInfo*>& kernels, Devices& devices) {
  require_saved(axes);
  const ErrorsDefaults& defaults = errors_defaults(*axes.operation);
  const auto families = expand_braces(
      "--family", single_names(axes.families.empty() ? defaults.families : axes.families));
  std::vector<std::string> plans = expand_braces("--plan", axes.plans);
  if (plans.empty()) plans.emplace_back();
  std::vector<Paging> pagings;
  for (const std::string& text : expand_braces("--layouts", single_names(axes.layouts))) {
    pagings.push_back(asked_paging("--layouts", text));
  }
  std::vector<ErrorsRow> rows;
  const auto add = [&](const KernelInfo& kernel, const Problem& problem, const InputSpec& inputs,
                       KeyOrder order) {
    ErrorsRow row{.name = kernel.name,
                  .executor = std::string(name_of(kernel.executor)),
                  .the_case = {.kernel = kernel.name, .problem = problem, .inputs = inputs},
                  .sets = is_fixed(axes, inputs.family) ? 1 : axes.sets,
                  .kernel = &kernel,
                  .key_order = order,
                  .truth = axes.truth,
                  .smooths_keys = axes.smooths_keys};
    const std::string gpu = devices.of(kernel).description();
    for (const Paging& paging : pagings.empty() ? std::vector{default_paging(kernel)} : pagings) {
      validate(paging, problem);
      row.the_case.layouts.paging = paging;
      for (const std::string& text : plans) {
        row.left_out.clear();
        const auto plan = plan_for(kernel, row.the_case, text, gpu, row.left_out);
        if (plan) row.left_out.clear();
        row.the_case.plan = plan.value_or(Plan{});
        rows.push_back(row);
      }
    }
  };
  for (const Questions& questions : questions_of(axes, defaults, kernels)) {
    const AskedProblem& asked = questions.asked;
    for (const std::string& family : families) {
      if (questions.is_default && axes.families.empty() && !fits(family, asked.problem)) continue;
      for (const InputSpec& inputs : asked_inputs(family, asked.problem, axes.seed)) {
        for (const std::string& name : axes.key_orders) {
          const KeyOrder order = key_order_from_name(name);
          require_same_answer(asked.problem, order);
          require_same_keys(*axes.operation, axes.truth, order);
          require_numbers(axes, inputs, order);
          if (axes.smooths_keys) require_smoothing(asked.problem, axes.truth);
          for (const KernelInfo* kernel : questions.kernels) {
            for (const ElementType type : kernel->element_types) {
              if (asked.type && *asked.type != type) continue;
              const bool is_exact = type == ElementType::fp32 && !are_codes(axes);
              if (axes.truth != Truth::given && is_exact) continue;
              Problem problem = asked.problem;
              problem.element_type = type;
              add(*kernel, problem, inputs, order);
            }
          }
        }
      }
    }
  }
  require_any(rows);
  return rows;
}

}  // namespace attest
