#include "core/inputs/captured_layer_family.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/inputs/embedded_data.hpp"

namespace attest {
namespace {

std::optional<std::string> why_unfit(const CapturedLayer& layer, const std::string& name,
                                     const Problem& problem) {
  const Shape q = layer.q.shape(), k = layer.k.shape();
  const std::int64_t rows = std::min(q[2], k[2]);
  const bool is_prefix = problem.query_len == problem.key_len && problem.key_len <= rows;
  const bool is_whole = problem.query_len == q[2] && problem.key_len == k[2];
  const bool fits = problem.batch == q[0] && problem.query_heads == q[1] &&
                    problem.kv_heads == k[1] && problem.head_dim == q[3] &&
                    problem.output_dim() == q[3] && (is_prefix || is_whole);
  if (fits) return std::nullopt;
  return fmt::format(
      "input family '{}' is a layer of b{} h{}/{} d{} and q{} k{} or at most n{}; the problem is "
      "{}",
      name, q[0], q[1], k[1], q[3], q[2], k[2], rows, to_string(problem));
}

/// The first rows of every head.
Tensor<float> first_rows(const Tensor<float>& from, const Shape& shape) {
  Tensor<float> to(shape);
  for (std::int64_t b = 0; b < shape[0]; ++b)
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t n = 0; n < shape[2]; ++n)
        std::ranges::copy(from.row(b, h, n), to.row(b, h, n).begin());
  return to;
}

void add_layers(const Safetensors& file, std::vector<std::string>& names) {
  for (CapturedLayer& layer : captured_layers(file)) {
    names.push_back(layer.name.empty() ? "layer" : layer.name);
    add_input_family(captured_layer_family(std::move(layer), names.back()));
  }
}

}  // namespace

InputFamily captured_layer_family(CapturedLayer layer, std::string name) {
  const std::int64_t head_dim = layer.q.shape()[3];
  const auto source = std::make_shared<const CapturedLayer>(std::move(layer));
  return {.name = name,
          .summary = "the first rows of a captured layer, all heads",
          .magnitudes = {1},
          .make =
              [source, name](const Problem& problem, const InputSpec& /*spec*/) {
                if (const auto reason = why_unfit(*source, name, problem))
                  throw InvalidInput(*reason);
                return Inputs{first_rows(source->q, query_shape(problem)),
                              first_rows(source->k, key_shape(problem)),
                              first_rows(source->v, value_shape(problem))};
              },
          .unsupported =
              [source, name](const Problem& problem) { return why_unfit(*source, name, problem); },
          .head_dims = {head_dim}};
}

std::vector<std::string> add_captured_layer_families(const std::filesystem::path& file) {
  std::vector<std::string> names;
  const auto bytes = embedded_real_qkv();
  add_layers(Safetensors::from_bytes({bytes.begin(), bytes.end()}, "real_qkv.safetensors"), names);
  if (!file.empty()) add_layers(Safetensors::from_file(file), names);
  return names;
}

}  // namespace attest
