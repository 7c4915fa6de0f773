#include "core/inputs/captured_inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

// Streams of core/inputs/random.hpp: one a choice.
enum Draw : std::uint64_t {
  draw_layer,
  draw_batch,
  draw_head,
  draw_start,
  draw_keys,
  draw_query_head,
  draw_queries
};

/// Captured layers that cases take rows from: shared by the family's two functions.
class Source {
 public:
  Source(std::vector<CapturedLayer> layers, std::string family)
      : layers_(std::move(layers)), family_(std::move(family)) {}

  [[nodiscard]] std::optional<std::string> unsupported(const Problem& problem) const {
    const auto dims = captured_head_dims(layers_);
    if (std::ranges::find(dims, problem.head_dim) == dims.end()) {
      return fmt::format("input family '{}' was captured with head_dim {}; the problem has {}",
                         family_, fmt::join(dims, ", "), problem.head_dim);
    }
    if (problem.output_dim() > problem.head_dim) {
      return fmt::format(
          "input family '{}' was captured with V as wide as K; the problem has value_dim {} and "
          "head_dim {}",
          family_, problem.output_dim(), problem.head_dim);
    }
    if (!fitting(problem).empty()) return std::nullopt;
    std::vector<std::string> sizes;
    for (const CapturedLayer& layer : layers_) {
      const std::string size = fmt::format("{} and {}", layer.q.shape()[2], layer.k.shape()[2]);
      if (layer.q.shape()[3] == problem.head_dim && std::ranges::find(sizes, size) == sizes.end()) {
        sizes.push_back(size);
      }
    }
    return fmt::format(
        "input family '{}' holds at most {} query and key rows at head_dim {}; the problem has {} "
        "and {}",
        family_, fmt::join(sizes, ", or "), problem.head_dim, problem.query_len, problem.key_len);
  }

  [[nodiscard]] Inputs make(const Problem& problem, const InputSpec& spec) const;

 private:
  [[nodiscard]] std::vector<const CapturedLayer*> fitting(const Problem& problem) const {
    std::vector<const CapturedLayer*> found;
    for (const CapturedLayer& layer : layers_) {
      if (layer.q.shape()[3] == problem.head_dim && layer.q.shape()[2] >= problem.query_len &&
          layer.k.shape()[2] >= problem.key_len) {
        found.push_back(&layer);
      }
    }
    return found;
  }

  std::vector<CapturedLayer> layers_;
  std::string family_;
};

/// Origin of rows: (batch, head, first row) of a captured tensor.
struct CapturedRows {
  std::int64_t batch = 0, head = 0, begin = 0;
};

/// Narrower tensors take the first columns.
void copy_rows(const Tensor<float>& from, const CapturedRows& rows, Tensor<float>& to,
               std::int64_t b, std::int64_t h) {
  for (std::int64_t n = 0; n < to.shape()[2]; ++n) {
    const auto row = to.row(b, h, n);
    std::ranges::copy(from.row(rows.batch, rows.head, rows.begin + n).first(row.size()),
                      row.begin());
  }
}

Inputs Source::make(const Problem& problem, const InputSpec& spec) const {
  const auto draw = [&](Draw what, std::int64_t index, std::int64_t bound) {
    return random_below(spec.seed, what, static_cast<std::uint64_t>(index), bound);
  };
  const auto layers = fitting(problem);
  if (layers.empty()) throw InvalidInput(*unsupported(problem));
  const CapturedLayer& layer =
      *layers[static_cast<std::size_t>(draw(draw_layer, 0, std::ssize(layers)))];
  const Shape queries = layer.q.shape(), keys = layer.k.shape();
  const std::int64_t captured_ratio = queries[1] / keys[1];
  const std::int64_t ratio = problem.query_heads / problem.kv_heads;

  Inputs inputs{Tensor<float>(query_shape(problem)), Tensor<float>(key_shape(problem)),
                Tensor<float>(value_shape(problem))};
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.kv_heads; ++h) {
      const std::int64_t i = b * problem.kv_heads + h;
      CapturedRows window{.batch = draw(draw_batch, i, keys[0]),
                          .head = draw(draw_head, i, keys[1])};
      if (draw(draw_start, i, 4) != 0) {
        window.begin = draw(draw_keys, i, keys[2] - problem.key_len + 1);
      }
      copy_rows(layer.k, window, inputs[forward::k], b, h);
      copy_rows(layer.v, window, inputs[forward::v], b, h);
      const std::int64_t aligned = first_query_row(problem, window.begin, layer);
      const std::int64_t first = draw(draw_query_head, i, captured_ratio);
      for (std::int64_t r = 0; r < ratio; ++r) {
        const bool is_any = problem.mask == Mask::none || r >= captured_ratio;
        const std::int64_t any =
            draw(draw_queries, i * ratio + r, queries[2] - problem.query_len + 1);
        copy_rows(layer.q,
                  {.batch = window.batch,
                   .head = window.head * captured_ratio + (first + r) % captured_ratio,
                   .begin = is_any ? any : aligned},
                  inputs[forward::q], b, h * ratio + r);
      }
    }
  }
  return inputs;
}

}  // namespace

InputFamily captured_family(std::vector<CapturedLayer> layers, std::string name,
                            std::string summary) {
  auto head_dims = captured_head_dims(layers);
  const auto source = std::make_shared<const Source>(std::move(layers), name);
  return {.name = std::move(name),
          .summary = std::move(summary),
          .magnitudes = {1},
          .make = [source](const Problem& problem,
                           const InputSpec& spec) { return source->make(problem, spec); },
          .unsupported = [source](const Problem& problem) { return source->unsupported(problem); },
          .head_dims = std::move(head_dims)};
}

void add_captured_inputs(const std::filesystem::path& file, std::string family_name) {
  add_input_family(captured_family(
      captured_layers(Safetensors::from_file(file)), std::move(family_name),
      fmt::format("windows of the Q, K, V captured in {}", printable(file.string(), 4096))));
}

void add_real_inputs() {
  for (const EmbeddedCapture& capture : embedded_captures()) {
    add_input_family(captured_family(embedded_layers(capture), std::string(capture.family),
                                     std::string(capture.summary)));
  }
}

}  // namespace attest
