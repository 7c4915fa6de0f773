#include "core/inputs/captured_layers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

constexpr const char* layout_key = "attest.layout";

[[noreturn]] void reject(const Safetensors& file, const std::string& what) {
  throw InvalidInput(fmt::format("captured inputs '{}': {}", printable(file.where(), 4096), what));
}

bool has_heads_first(const Safetensors& file) {
  const auto found = file.metadata().find(layout_key);
  if (found == file.metadata().end()) return false;
  if (found->second != "HND" && found->second != "NHD") {
    reject(file, fmt::format("metadata {} is '{}'; allowed: HND, NHD", layout_key,
                             printable(found->second)));
  }
  return found->second == "HND";
}

/// Any accepted layout as a view in [batch, head, row, dim] order.
TensorView<const float> view_of(const Safetensors& file, const SafetensorsEntry& entry,
                                const std::vector<float>& values) {
  const auto& s = entry.shape;
  if ((s.size() != 3 && s.size() != 4) || std::ranges::find(s, 0) != s.end()) {
    reject(file, fmt::format("tensor '{}' has shape [{}]; allowed: [batch, heads, tokens, "
                             "head_dim] or [tokens, heads, head_dim], none of them 0",
                             printable(entry.name), fmt::join(s, ", ")));
  }
  if (s.size() == 4) {
    return {values.data(), {s[0], s[1], s[2], s[3]}, {s[1] * s[2] * s[3], s[2] * s[3], s[3], 1}};
  }
  if (has_heads_first(file)) {
    return {values.data(), {1, s[0], s[1], s[2]}, {entry.size(), s[1] * s[2], s[2], 1}};
  }
  return {values.data(), {1, s[1], s[0], s[2]}, {entry.size(), s[2], s[1] * s[2], 1}};
}

Tensor<float> read_tensor(const Safetensors& file, const std::string& name) {
  const SafetensorsEntry* entry = file.find(name);
  if (entry == nullptr) {
    reject(file, fmt::format("has no tensor '{}'; a layer needs q, k and v", printable(name)));
  }
  const std::vector<float> values = file.values(*entry);
  const auto bad = std::ranges::count_if(values, [](float x) { return !std::isfinite(x); });
  if (bad > 0) {
    reject(file, fmt::format("tensor '{}' holds {} values that are NaN or infinite; allowed: none",
                             printable(name), bad));
  }
  const TensorView<const float> from = view_of(file, *entry, values);
  Tensor<float> tensor(from.shape);
  for (std::int64_t b = 0; b < from.shape[0]; ++b) {
    for (std::int64_t h = 0; h < from.shape[1]; ++h) {
      for (std::int64_t n = 0; n < from.shape[2]; ++n) {
        const float* row = &from.at(b, h, n, 0);
        std::copy_n(row, from.shape[3], tensor.row(b, h, n).begin());
      }
    }
  }
  return tensor;
}

void check_shapes(const Safetensors& file, const CapturedLayer& layer) {
  const Shape q = layer.q.shape(), k = layer.k.shape(), v = layer.v.shape();
  const auto complain = [&](std::string_view rule) {
    reject(file, fmt::format("{}q, k, v are [{}], [{}], [{}] as [batch, heads, tokens, head_dim]; "
                             "allowed: {}",
                             layer.name.empty() ? "" : printable(layer.name) + ": ",
                             fmt::join(q, ", "), fmt::join(k, ", "), fmt::join(v, ", "), rule));
  };
  if (k != v) complain("k and v of one shape");
  if (q[0] != k[0] || q[3] != k[3]) complain("one batch size and one head_dim");
  if (q[1] % k[1] != 0) complain("query heads that are a multiple of the key heads");
  try {
    validate({.batch = q[0],
              .query_heads = q[1],
              .kv_heads = k[1],
              .query_len = q[2],
              .key_len = k[2],
              .head_dim = q[3]});
  } catch (const InvalidInput& error) {
    complain(error.what());
  }
}

/// `NAME` of a tensor called `NAME.q` (k, v), empty for `q`; nullopt for other tensors.
std::optional<std::string> layer_of(std::string_view tensor) {
  if (tensor.empty() || std::string_view("qkv").find(tensor.back()) == std::string_view::npos) {
    return std::nullopt;
  }
  tensor.remove_suffix(1);
  if (tensor.empty()) return "";
  if (tensor.back() != '.') return std::nullopt;
  tensor.remove_suffix(1);
  return std::string(tensor);
}

std::optional<std::string> why_unfit(const CapturedLayer& layer, const std::string& name,
                                     const Problem& problem) {
  const Shape q = layer.q.shape(), k = layer.k.shape();
  const bool fits = problem.batch == q[0] && problem.query_heads == q[1] &&
                    problem.kv_heads == k[1] && problem.head_dim == q[3] &&
                    problem.output_dim() == q[3] && problem.query_len <= q[2] &&
                    problem.key_len <= k[2];
  if (fits) return std::nullopt;
  return fmt::format(
      "input family '{}' is a layer of b{} h{}/{} d{} and at most q{} k{}; the problem is {}", name,
      q[0], q[1], k[1], q[3], q[2], k[2], to_string(problem));
}

/// Consecutive rows of every head.
Tensor<float> rows_from(std::int64_t begin, const Tensor<float>& from, const Shape& shape) {
  Tensor<float> to(shape);
  for (std::int64_t b = 0; b < shape[0]; ++b)
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t n = 0; n < shape[2]; ++n)
        std::ranges::copy(from.row(b, h, begin + n), to.row(b, h, n).begin());
  return to;
}

void add_layers(std::vector<CapturedLayer> layers, std::vector<std::string>& names) {
  for (CapturedLayer& layer : layers) {
    names.push_back(layer.name.empty() ? "layer" : layer.name);
    add_input_family(captured_layer_family(std::move(layer), names.back()));
  }
}

}  // namespace

std::vector<CapturedLayer> captured_layers(const Safetensors& file) {
  std::set<std::string> names;
  for (const SafetensorsEntry& entry : file.entries()) {
    if (const auto name = layer_of(entry.name)) names.insert(*name);
  }
  if (names.empty()) {
    reject(file, fmt::format("none of its {} tensors is a q, k or v; allowed: q, k, v or NAME.q, "
                             "NAME.k, NAME.v",
                             file.entries().size()));
  }
  std::vector<CapturedLayer> layers;
  for (const std::string& name : names) {
    const std::string prefix = name.empty() ? "" : name + ".";
    layers.push_back({.name = name,
                      .q = read_tensor(file, prefix + "q"),
                      .k = read_tensor(file, prefix + "k"),
                      .v = read_tensor(file, prefix + "v")});
    check_shapes(file, layers.back());
  }
  return layers;
}

std::vector<std::int64_t> captured_head_dims(const std::vector<CapturedLayer>& layers) {
  std::set<std::int64_t> dims;
  for (const CapturedLayer& layer : layers) dims.insert(layer.q.shape()[3]);
  return {dims.begin(), dims.end()};
}

std::int64_t first_query_row(const Problem& problem, std::int64_t key_begin,
                             const CapturedLayer& layer) {
  const std::int64_t queries = layer.q.shape()[2], keys = layer.k.shape()[2];
  std::int64_t begin = key_begin + queries - keys;
  if (problem.mask != Mask::causal_top_left && problem.mask != Mask::window_top_left)
    begin += problem.key_len - problem.query_len;
  return std::clamp<std::int64_t>(begin, 0, queries - problem.query_len);
}

InputFamily captured_layer_family(CapturedLayer layer, std::string name) {
  const std::int64_t head_dim = layer.q.shape()[3];
  const auto source = std::make_shared<const CapturedLayer>(std::move(layer));
  return {
      .name = name,
      .summary = "the first keys of a captured layer and the queries of those tokens, all heads",
      .magnitudes = {1},
      .make =
          [source, name](const Problem& problem, const InputSpec& /*spec*/) {
            if (const auto reason = why_unfit(*source, name, problem)) throw InvalidInput(*reason);
            return Inputs{
                rows_from(first_query_row(problem, 0, *source), source->q, query_shape(problem)),
                rows_from(0, source->k, key_shape(problem)),
                rows_from(0, source->v, value_shape(problem))};
          },
      .unsupported = [source,
                      name](const Problem& problem) { return why_unfit(*source, name, problem); },
      .head_dims = {head_dim}};
}

std::vector<CapturedLayer> embedded_layers(const EmbeddedCapture& capture) {
  const auto& bytes = capture.bytes;
  return captured_layers(
      Safetensors::from_bytes({bytes.begin(), bytes.end()}, std::string(capture.file)));
}

std::vector<std::string> add_captured_layer_families(const std::filesystem::path& file) {
  std::vector<std::string> names;
  for (const EmbeddedCapture& capture : embedded_captures()) {
    add_layers(embedded_layers(capture), names);
  }
  if (!file.empty()) add_layers(captured_layers(Safetensors::from_file(file)), names);
  return names;
}

}  // namespace attest
