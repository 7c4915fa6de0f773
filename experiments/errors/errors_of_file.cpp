#include "experiments/errors/errors_of_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/inputs/captured_layers.hpp"
#include "core/inputs/safetensors.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/device_reference.hpp"
#include "cpu_reference/forward/error_bound.hpp"
#include "cpu_reference/forward/reference_f64.hpp"

namespace attest {
namespace {

/// `WHO` of a tensor called `NAME.WHO.o`; nothing for other tensors.
std::optional<std::string> name_in(std::string_view tensor, std::string_view layer) {
  if (!layer.empty()) {
    if (!tensor.starts_with(layer) || !tensor.substr(layer.size()).starts_with('.')) return {};
    tensor.remove_prefix(layer.size() + 1);
  }
  if (!tensor.ends_with(".o")) return {};
  tensor.remove_suffix(2);
  // A dot belongs to another layer's name.
  if (tensor.empty() || tensor.find('.') != std::string_view::npos) return {};
  return std::string(tensor);
}

Tensor<float> output_of(const Safetensors& file, const SafetensorsEntry& entry,
                        const std::vector<std::int64_t>& wanted) {
  if (entry.shape != wanted) {
    throw InvalidInput(fmt::format("outputs '{}': tensor '{}' has shape [{}]; allowed: [{}]",
                                   printable(file.where(), 4096), printable(entry.name),
                                   fmt::join(entry.shape, ", "), fmt::join(wanted, ", ")));
  }
  Tensor<float> tensor(
      {wanted[0], wanted[1], wanted[2], wanted.size() == 4 ? wanted[3] : std::int64_t{1}});
  std::ranges::copy(file.values(entry), tensor.values().begin());
  return tensor;
}

}  // namespace

std::vector<ErrorsRow> errors_of_file(const std::filesystem::path& path, Mask mask,
                                      const ErrorDetail& detail) {
  const Safetensors file = Safetensors::from_file(path);
  std::vector<ErrorsRow> rows;
  for (CapturedLayer& layer : captured_layers(file)) {
    const Shape q = layer.q.shape(), k = layer.k.shape();
    const Problem problem{.batch = q[0],
                          .query_heads = q[1],
                          .kv_heads = k[1],
                          .query_len = q[2],
                          .key_len = k[2],
                          .head_dim = q[3],
                          .mask = mask,
                          .scale = default_scale(q[3])};
    const Inputs inputs{std::move(layer.q), std::move(layer.k), std::move(layer.v)};
    std::optional<Answer> answer;
    std::int64_t certified_rows = 0;
    for (const SafetensorsEntry& entry : file.entries()) {
      const auto name = name_in(entry.name, layer.name);
      if (!name) continue;
      if (!answer) {
        answer = best_answer(problem, inputs, reference_plan(problem.key_len));
        const Certificate certificate = certify_rows(problem, inputs, *answer, 0, 1);
        if (!certificate.holds())
          throw std::logic_error("the f64 reference errs more than it says");
        certified_rows = certificate.rows;
      }
      ErrorsRow row{.name = *name, .executor = "file", .the_case = {.problem = problem}};
      row.the_case.problem.element_type = entry.type;
      row.the_case.inputs.family = layer.name.empty() ? "file" : layer.name;
      if (const auto note = file.metadata().find("attest.made_by"); note != file.metadata().end())
        row.made_by = printable(note->second, 200);
      row.certified_rows = certified_rows;
      row.outputs.push_back({"O", tensor_errors((*answer)[forward::o].value,
                                                output_of(file, entry, {q[0], q[1], q[2], q[3]}),
                                                entry.type, nullptr, detail)});
      const std::string stem = entry.name.substr(0, entry.name.size() - 1);
      if (const SafetensorsEntry* lse = file.find(stem + "lse")) {
        row.outputs.push_back({"LSE", tensor_errors((*answer)[forward::lse].value,
                                                    output_of(file, *lse, {q[0], q[1], q[2]}),
                                                    lse->type, nullptr, {.axes = detail.axes})});
      }
      rows.push_back(std::move(row));
    }
  }
  if (rows.empty()) {
    throw InvalidInput(fmt::format("outputs '{}': no tensor is called WHO.o or NAME.WHO.o",
                                   printable(file.where(), 4096)));
  }
  return rows;
}

}  // namespace attest
