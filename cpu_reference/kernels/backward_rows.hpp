#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/attention/dropout.hpp"
#include "core/operations/backward_arguments.hpp"
#include "cpu_reference/forward/online_softmax_rows.hpp"
#include "cpu_reference/kernels/entry_keys.hpp"
#include "cpu_reference/kernels/tensor_rows.hpp"

namespace attest {

/// A tensor of one head of one entry, decoded: [count, columns].
struct HeadTensor {
  std::int64_t columns = 0;
  std::vector<float> values;

  HeadTensor(std::int64_t count, std::int64_t columns_)
      : columns(columns_), values(static_cast<std::size_t>(count * columns_), 0.0F) {}

  [[nodiscard]] std::span<float> row(std::int64_t n) {
    return std::span(values).subspan(static_cast<std::size_t>(n * columns),
                                     static_cast<std::size_t>(columns));
  }
  [[nodiscard]] std::span<const float> row(std::int64_t n) const {
    return std::span(values).subspan(static_cast<std::size_t>(n * columns),
                                     static_cast<std::size_t>(columns));
  }
  [[nodiscard]] HeadTensor transposed() const {
    const std::int64_t count =
        columns == 0 ? 0 : static_cast<std::int64_t>(values.size()) / columns;
    HeadTensor result(columns, count);
    for (std::int64_t n = 0; n < count; ++n) {
      for (std::int64_t c = 0; c < columns; ++c) {
        result.row(c)[static_cast<std::size_t>(n)] = row(n)[static_cast<std::size_t>(c)];
      }
    }
    return result;
  }
};

/// Inputs and outputs of a backward kernel on the CPU, by entry and head.
class BackwardRows {
 public:
  BackwardRows(const BackwardArguments& a, std::int64_t entry)
      : a_(a),
        entry_(entry),
        queries_(entry_rows(a.query_starts, entry, a.problem.query_len)),
        keys_(entry_rows(a.key_starts, entry, a.problem.key_len)) {
    const KeyLists& lists = a.key_lists;
    for (std::int64_t n = 0; lists.is_used() && n < queries_.count; n += lists.rows) {
      listed_.push_back(listed_keys(lists, keys_.count, entry, n));
    }
  }

  [[nodiscard]] std::int64_t queries() const { return queries_.count; }
  [[nodiscard]] std::int64_t keys() const { return keys_.count; }
  /// Keys that the query sees but for hidden ones. Neither end of the range falls from one query to
  /// the next.
  [[nodiscard]] KeyRange keys_of(std::int64_t query) const {
    const Problem& p = a_.problem;
    return with_prefix_and_document(
        a_, entry_, keys_.count, query,
        visible_range(p.mask, p.window, queries_.count, keys_.count, query));
  }
  /// True if padding hides the key, or lists do not leave it to the query.
  [[nodiscard]] bool is_hidden(std::int64_t query, std::int64_t key) const {
    if (a_.key_mask != nullptr && a_.key_mask[entry_ * a_.problem.key_len + key] == 0) return true;
    if (listed_.empty()) return false;
    const std::vector<bool>& listed = listed_[static_cast<std::size_t>(query / a_.key_lists.rows)];
    return !listed[static_cast<std::size_t>(key)];
  }

  /// Number that ALiBi takes from the score of a pair; 0 without slopes.
  [[nodiscard]] float alibi(std::int64_t h, std::int64_t query, std::int64_t key) const {
    if (a_.slopes == nullptr) return 0;
    const std::int64_t distance =
        key_distance(a_.problem.mask, queries_.count, keys_.count, query, key);
    return a_.slopes[h] * static_cast<float>(std::abs(distance));
  }

  /// Element of the bias; 0 without one. Its place is that of its gradient, too.
  [[nodiscard]] float bias(std::int64_t h, std::int64_t query, std::int64_t key) const {
    return a_.bias == nullptr ? 0 : a_.bias[place_in_bias(h, query, key)];
  }
  /// Factor of the weight of a pair by dropout: 0 where it falls, 1 without dropout.
  [[nodiscard]] float kept(std::int64_t h, std::int64_t query, std::int64_t key) const {
    if (a_.problem.dropout == 0) return 1;
    return keeps_weight(a_.problem, entry_, h, query, key) ? kept_scale(a_.problem) : 0.0F;
  }
  /// Adds to the gradient of the element, which is there.
  void add_to_bias(float x, std::int64_t h, std::int64_t query, std::int64_t key) const {
    a_.d_bias[place_in_bias(h, query, key)] += x;
  }

  [[nodiscard]] HeadTensor q(std::int64_t h) const {
    return read(a_.q, a_.q_strides, queries_, h, a_.problem.head_dim);
  }
  [[nodiscard]] HeadTensor o(std::int64_t h) const {
    return read(a_.o, a_.o_strides, queries_, h, a_.problem.output_dim());
  }
  [[nodiscard]] HeadTensor gradient(std::int64_t h) const {
    return read(a_.d_o, a_.do_strides, queries_, h, a_.problem.output_dim());
  }
  [[nodiscard]] HeadTensor k(std::int64_t kv_head) const {
    return read(a_.k, a_.k_strides, keys_, kv_head, a_.problem.head_dim);
  }
  [[nodiscard]] HeadTensor v(std::int64_t kv_head) const {
    return read(a_.v, a_.v_strides, keys_, kv_head, a_.problem.output_dim());
  }
  [[nodiscard]] float lse(std::int64_t h, std::int64_t query) const {
    return a_.lse[place_of_lse(h, query)];
  }
  [[nodiscard]] float lse_gradient(std::int64_t h, std::int64_t query) const {
    return a_.d_lse == nullptr ? 0 : a_.d_lse[place_of_lse(h, query)];
  }

  void write_dq(std::int64_t h, const HeadTensor& dq) const {
    write(dq, a_.dq, a_.dq_strides, queries_, h);
  }
  void write_dk(std::int64_t kv_head, const HeadTensor& dk) const {
    write(dk, a_.dk, a_.dk_strides, keys_, kv_head);
  }
  void write_dv(std::int64_t kv_head, const HeadTensor& dv) const {
    write(dv, a_.dv, a_.dv_strides, keys_, kv_head);
  }

 private:
  [[nodiscard]] std::int64_t place_in_bias(std::int64_t h, std::int64_t query,
                                           std::int64_t key) const {
    return a_.bias_strides.offset(entry_, h, query) + key;
  }
  /// Position of a row in LSE, and in dLSE, which lies alike.
  [[nodiscard]] std::int64_t place_of_lse(std::int64_t h, std::int64_t query) const {
    const Problem& p = a_.problem;
    const std::int64_t total = a_.query_starts == nullptr ? p.query_len : a_.query_starts[p.batch];
    return (queries_.at * p.query_heads + h) * total + queries_.first + query;
  }
  /// Byte at which row n of a head begins.
  [[nodiscard]] std::ptrdiff_t place(const Strides& strides, const EntryRows& rows, std::int64_t h,
                                     std::int64_t n) const {
    return strides.offset(rows.at, h, rows.first + n) *
           static_cast<std::ptrdiff_t>(format_of(a_.problem.element_type).size_bytes);
  }
  [[nodiscard]] HeadTensor read(const void* tensor, const Strides& strides, const EntryRows& rows,
                                std::int64_t h, std::int64_t columns) const {
    const ElementType type = a_.problem.element_type;
    HeadTensor head(rows.count, columns);
    for (std::int64_t n = 0; n < rows.count; ++n) {
      read_row(tensor, place(strides, rows, h, n), type, head.row(n));
    }
    return head;
  }
  void write(const HeadTensor& head, void* tensor, const Strides& strides, const EntryRows& rows,
             std::int64_t h) const {
    const ElementType type = a_.problem.element_type;
    for (std::int64_t n = 0; n < rows.count; ++n) {
      write_row(head.row(n), tensor, place(strides, rows, h, n), type);
    }
  }

  const BackwardArguments& a_;
  std::int64_t entry_;
  EntryRows queries_, keys_;
  std::vector<std::vector<bool>> listed_;  ///< of each list, its keys; empty without lists
};

/// A chain of fused multiply-adds from 0.
[[nodiscard]] inline float dot(std::span<const float> x, std::span<const float> y) {
  float sum = 0;
  for (std::size_t c = 0; c < x.size(); ++c) sum = std::fma(x[c], y[c], sum);
  return sum;
}

/// Dot products of x with each of some rows, which `columns` holds as columns [x.size(), all rows]:
/// chains of fused multiply-adds from 0.
[[nodiscard]] inline std::vector<float> dots(std::span<const float> x, const HeadTensor& columns,
                                             KeyRange rows) {
  std::vector<float> sums(static_cast<std::size_t>(rows.size()), 0.0F);
  multiply_accumulate(x, columns.values.data() + rows.begin, columns.columns, sums);
  return sums;
}

/// to += factor * row, one fused multiply-add an element.
inline void add_row(float factor, std::span<const float> row, std::span<float> to) {
  multiply_accumulate({&factor, 1}, row.data(), 0, to);
}

/// Modifications of the score of a pair, and of its weight.
struct PairModifications {
  float alibi = 0;  ///< number that is taken from the score
  float bias = 0;   ///< number that is added to the score
  float kept = 1;   ///< factor of the weight
};

/// P and dS of a pair that is seen, and what it adds to the gradient of its bias.
struct PairWeights {
  float p, ds, dbias;
};

/// P, as dropout leaves it, and dS from q.k, dO.v, LSE and delta, in fp32; `stored`: the format in
/// which products read them.
[[nodiscard]] inline PairWeights pair_weights(const Problem& problem, ElementType stored,
                                              float score, float product, float lse, float delta,
                                              const PairModifications& by = {}) {
  float s = problem.scale * score, slope = 1;
  if (problem.softcap != 0) {
    const float t = std::tanh(s / problem.softcap);
    s = problem.softcap * t;
    slope = 1 - t * t;
  }
  s -= by.alibi;
  s += by.bias;
  const float p = std::exp(s - lse);
  const float dbias = p * (by.kept * product - delta);
  const auto rounded = [&](float x) { return static_cast<float>(round_to(stored, x)); };
  return {rounded(p * by.kept), rounded(dbias * slope), dbias};
}

}  // namespace attest
