#include "cpu_reference/kernels/row_kernel.hpp"

#include <algorithm>
#include <utility>

#include "core/attention/element_type.hpp"
#include "core/attention/storage.hpp"
#include "core/operations/forward.hpp"
#include "core/run/index_arrays.hpp"
#include "cpu_reference/forward/online_softmax_rows.hpp"
#include "cpu_reference/kernels/tensor_rows.hpp"

namespace attest {
namespace {

Tensor<float> read_tensor(const void* data, const Shape& shape, const Strides& strides,
                          ElementType type) {
  Tensor<float> tensor(shape);
  const std::size_t size = format_of(type).size_bytes;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        read_row(data, strides.offset(b, h, n) * static_cast<std::ptrdiff_t>(size), type,
                 tensor.row(b, h, n));
      }
    }
  }
  return tensor;
}

void write_tensor(const Tensor<float>& tensor, void* data, const Strides& strides,
                  ElementType type) {
  const Shape& shape = tensor.shape();
  const std::size_t size = format_of(type).size_bytes;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        write_row(tensor.row(b, h, n), data,
                  strides.offset(b, h, n) * static_cast<std::ptrdiff_t>(size), type);
      }
    }
  }
}

/// K of one head, [key_len, head_dim] to [head_dim, key_len].
std::vector<float> transposed(std::span<const float> keys, std::int64_t head_dim) {
  const auto columns = static_cast<std::size_t>(head_dim);
  const std::size_t rows = keys.size() / columns;
  std::vector<float> result(keys.size());
  for (std::size_t n = 0; n < rows; ++n) {
    for (std::size_t d = 0; d < columns; ++d) result[d * rows + n] = keys[n * columns + d];
  }
  return result;
}

/// K and V of the keys that single rows see.
class SeenKeys {
 public:
  /// Fills the row's keys, values and lengths.
  void gather(const Problem& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
              std::int64_t n, AttentionRow& row) {
    const std::vector<std::int64_t> seen = visible_keys_of(p, b, n);
    keys_.clear();
    values_.clear();
    for (const std::int64_t key : seen) {
      const auto k = inputs[forward::k].row(b, p.kv_head_of(h), key),
                 v = inputs[forward::v].row(b, p.kv_head_of(h), key);
      keys_.insert(keys_.end(), k.begin(), k.end());
      values_.insert(values_.end(), v.begin(), v.end());
    }
    keys_ = transposed(keys_, p.head_dim);
    row.keys_transposed = keys_.data();
    row.values = values_.data();
    row.key_len = row.visible = static_cast<std::int64_t>(seen.size());
  }

 private:
  std::vector<float> keys_, values_;
};

Outputs attend_rows(const Problem& p, const Plan& plan, const Inputs& inputs,
                    const RowAttention& attend) {
  Outputs outputs{Tensor<float>(output_shape(p)), Tensor<float>(lse_shape(p))};
  const auto head_size = static_cast<std::size_t>(p.key_len * p.head_dim);
  const bool sees_first_keys = !is_window(p.mask) && p.length_seed == 0 && p.padding_seed == 0;
  std::vector<float> keys;
  SeenKeys seen;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      const std::int64_t kv_head = p.kv_head_of(h);
      const auto first = static_cast<std::size_t>(b * p.kv_heads + kv_head) * head_size;
      if (sees_first_keys && (h == 0 || kv_head != p.kv_head_of(h - 1))) {
        keys = transposed(inputs[forward::k].values().subspan(first, head_size), p.head_dim);
      }
      for (std::int64_t n = 0; n < p.query_len_of(b); ++n) {
        AttentionRow row{.query = inputs[forward::q].row(b, h, n), .scale = p.scale};
        if (sees_first_keys) {
          row.keys_transposed = keys.data();
          row.values = inputs[forward::v].values().data() + first;
          row.key_len = p.key_len;
          row.visible = p.visible_keys(n);
        } else {
          seen.gather(p, inputs, b, h, n, row);
        }
        outputs[forward::lse].at(b, h, n, 0) = attend(row, plan, outputs[forward::o].row(b, h, n));
      }
    }
  }
  return outputs;
}

/// The pages as the table says them, of which page_size alone comes from the host.
Paged pages_of(const Arguments& a) {
  const PageTable& table = a.page_table;
  PageMap map{.page_size = table.page_size, .pool_pages = table.pool_pages};
  for (std::int64_t b = 0; b < a.problem.batch; ++b) {
    map.lengths.push_back(table.key_len(b));
    const std::int32_t* first = table.of(b);
    map.pages.emplace_back(first, first + (map.lengths.back() + map.page_size - 1) / map.page_size);
  }
  return {std::move(map)};
}

}  // namespace

std::vector<float> AttentionRow::scores(float factor) const {
  std::vector<float> result(static_cast<std::size_t>(visible), 0.0F);
  multiply_accumulate(query, keys_transposed, key_len, result);
  for (float& score : result) score *= factor;
  return result;
}

void AttentionRow::add_value(float weight, std::int64_t key, std::span<float> acc) const {
  multiply_accumulate({&weight, 1}, value(key), 0, acc);
}

std::vector<ScoreTile> tiles_of(std::span<const float> scores, KeyRange range, std::int64_t tile) {
  std::vector<ScoreTile> tiles;
  const std::int64_t end = std::min(range.end, static_cast<std::int64_t>(scores.size()));
  for (std::int64_t first = range.begin; first < end; first += tile) {
    const auto count = static_cast<std::size_t>(std::min(tile, end - first));
    tiles.push_back({first, scores.subspan(static_cast<std::size_t>(first), count)});
  }
  return tiles;
}

std::vector<ScoreTile> tiles_of(std::span<const float> scores, std::int64_t tile) {
  return tiles_of(scores, {0, static_cast<std::int64_t>(scores.size())}, tile);
}

std::function<void(const Arguments&, Device&)> cpu_launch(TensorAttention attend) {
  return [attend = std::move(attend)](const Arguments& a, Device& /*device*/) {
    const Problem& p = a.problem;
    const auto storage = [&](const TensorSpec& tensor) -> Storage {
      const bool has_keys = tensor.rows == Rows::keys;
      if (has_keys && a.page_table.page_size > 0) return pages_of(a);
      const std::int32_t* const starts = has_keys ? a.key_starts : a.query_starts;
      if (starts == nullptr || tensor.rows == Rows::neither) return Strided{};
      return Packed{{starts, starts + p.batch + 1}};
    };
    Inputs inputs;
    for (std::size_t i = 0; i < p.operation->inputs().size(); ++i) {
      const InputIndex index{i};
      const TensorSpec& tensor = (*p.operation)[index];
      const Storage rows = storage(tensor);
      const Shape shape = tensor.shape(p);
      inputs[index] = restored(
          rows,
          read_tensor(a[index].data, stored_shape(rows, shape), a[index].strides, tensor.format(p)),
          shape, 0.0F);
    }
    const Outputs outputs = attend(p, a.plan, inputs);
    for (std::size_t i = 0; i < p.operation->outputs().size(); ++i) {
      const OutputIndex index{i};
      const TensorSpec& tensor = (*p.operation)[index];
      write_tensor(stored(storage(tensor), outputs[index], 0), a[index].data, a[index].strides,
                   tensor.format(p));
    }
  };
}

KernelInfo row_kernel(KernelInfo kernel, RowAttention attend) {
  kernel.executor = Executor::cpu;
  kernel.element_types.assign(all_element_types().begin(), all_element_types().end());
  kernel.masks.assign(all_masks().begin(), all_masks().end());
  kernel.features = {.no_queries = true, .lengths = true, .padding = true};
  kernel.layout_needs.pages = Pages::also;
  kernel.launch = cpu_launch(
      [attend = std::move(attend)](const Problem& problem, const Plan& plan, const Inputs& inputs) {
        return attend_rows(problem, plan, inputs, attend);
      });
  return kernel;
}

PrecisionPlan row_precision(const Problem& problem) {
  PrecisionPlan precision;
  precision.score = {.kind = Accumulation::Kind::fp32_fma};
  precision.value = {.kind = Accumulation::Kind::fp32_fma};
  precision.scale_after_dot = true;
  precision.exp = library_expf();
  precision.rescale = Rescale::deferred;
  precision.normaliser_chain = std::max<std::int64_t>(problem.key_len, 1);
  precision.division_error = fp32_roundoff;
  precision.log_error = 2 * fp32_roundoff;
  return precision;
}

ExpMethod exp2_of_scaled_difference() {
  ExpMethod exp = exp2_folded();
  exp.argument_error += fp32_roundoff;
  return exp;
}

std::int64_t tile_count(std::int64_t key_len, std::int64_t tile) {
  return std::max<std::int64_t>((key_len + tile - 1) / tile, 1);
}

std::vector<Plan> no_plan_choice(const Problem& /*problem*/) {
  return {Plan{}};
}

std::vector<Plan> key_tile_plans(const Problem& /*problem*/) {
  return {{.key_tile = 1}, {.key_tile = 3}, {.key_tile = 16}, {.key_tile = 64}};
}

}  // namespace attest
