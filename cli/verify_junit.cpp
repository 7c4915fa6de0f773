#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/output.hpp"
#include "cli/verify.hpp"
#include "core/base/text.hpp"
#include "core/base/text_file.hpp"
#include "verify/campaign/counterexample.hpp"
#include "verify/campaign/kernel_result.hpp"

namespace attest {
namespace {

/// Text as XML 1.0 has it, which cannot say control bytes.
std::string xml(std::string_view text) {
  const bool is_text = is_utf8(text);
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += (byte < 0x20 && c != '\n') || (byte > 0x7e && !is_text) ? '?' : c;
    }
  }
  return out;
}

/// What a test case of JUnit came to; `tag` is empty for one that passed.
struct Ending {
  std::string_view tag{};
  std::string type{};
  std::string message{};
  std::string text{};
};

struct TestCase {
  std::string_view name;
  Ending ending;
};

Layer layer_of(const Failure& failure) {
  const Law* const law = find_law(failure.law);
  return law == nullptr ? Layer::exact : law->layer;  // the process ended before any law
}

Ending ending_of(const Failure& failure, const KernelResult& result, const VerifyOptions& options,
                 Trouble& trouble) {
  const bool is_error = failure.kind != Verdict::failed;  // crashed or timed out
  const std::string kind(name_of(failure.kind));
  return {.tag = is_error ? "error" : "failure",
          .type = is_error ? kind : failure.law,
          .message = is_error ? fmt::format("{} under {}", kind, failure.law)
                              : fmt::format("{}: {}", failure.law, failure.check.detail),
          .text = describe(failure, *result.kernel) +
                  keep_counterexample(failure, result.kernel->executor, options, trouble)};
}

Ending skipped(std::string why) {
  return {.tag = "skipped", .message = std::move(why)};
}

/// A layer of a kernel's laws.
Ending ending_of(Layer layer, const KernelResult& result, const VerifyOptions& options,
                 Trouble& trouble) {
  if (result.failure && layer_of(*result.failure) == layer) {
    return ending_of(*result.failure, result, options, trouble);
  }
  if (result.verdict() == Verdict::inconclusive) {
    constexpr bool names_claims = false;
    return skipped(fmt::format("{}", fmt::join(shortfalls_of(result, names_claims), "; ")));
  }
  if (result.checks_of(layer) > 0) return {};
  return skipped(result.failure ? "not asked before another layer failed"
                                : "no law of this layer was asked");
}

std::vector<TestCase> test_cases_of(const KernelResult& result, const VerifyOptions& options,
                                    Trouble& trouble) {
  if (result.kernel->role != KernelRole::kernel) {  // is wrong by design
    if (result.is_as_expected()) return {{"killed", {}}};
    return {
        {"killed", {.tag = "failure", .type = "not killed", .message = "it must be, and was not"}}};
  }
  std::vector<TestCase> cases;
  for (const Layer layer : {Layer::exact, Layer::bound, Layer::statistics}) {
    cases.push_back({name_of(layer), ending_of(layer, result, options, trouble)});
  }
  return cases;
}

std::string suite_of(const KernelResult& result, const VerifyOptions& options, Trouble& trouble) {
  const std::vector<TestCase> cases = test_cases_of(result, options, trouble);
  const auto count = [&](std::string_view tag) {
    return std::ranges::count(cases, tag, [](const TestCase& one) { return one.ending.tag; });
  };
  const std::string name =
      xml(fmt::format("{} on {}", result.kernel->name, name_of(result.kernel->executor)));
  std::string text = fmt::format(
      "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" "
      "time=\"{:.3f}\">\n    <properties>\n",
      name, cases.size(), count("failure"), count("error"), count("skipped"),
      std::accumulate(result.seconds.begin(), result.seconds.end(), 0.0));
  const std::string commit = current_provenance("").commit;
  for (const auto& [property, value] :
       {std::pair("seed", std::to_string(options.campaign.seed)),
        std::pair("cases", std::to_string(result.cases)), std::pair("commit", commit)}) {
    append(text, "      <property name=\"{}\" value=\"{}\"/>\n", property, xml(value));
  }
  append(text, "    </properties>\n");
  for (const auto& [layer, ending] : cases) {
    append(text, "    <testcase classname=\"{}\" name=\"{}\"", name, layer);
    if (ending.tag.empty()) {
      append(text, "/>\n");
      continue;
    }
    append(text, "><{}{} message=\"{}\">{}</{}></testcase>\n", ending.tag,
           ending.type.empty() ? "" : fmt::format(" type=\"{}\"", xml(ending.type)),
           xml(ending.message), xml(ending.text), ending.tag);
  }
  return text + "  </testsuite>\n";
}

}  // namespace

void write_junit(const std::vector<KernelResult>& results, const VerifyOptions& options,
                 Trouble& trouble) {
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"attest verify\">\n";
  for (const KernelResult& result : results) text += suite_of(result, options, trouble);
  trouble.tries([&] { write_whole_file(options.junit, text + "</testsuites>\n"); });
}

}  // namespace attest
