#include "verify/agreement.hpp"

#include <algorithm>

#include "core/random.hpp"

namespace attest {
namespace {

Tensor<double> sum(const Tensor<double>& a, const Tensor<double>& b) {
  Tensor<double> total = a;
  for (std::size_t i = 0; i < total.values().size(); ++i) total.values()[i] += b.values()[i];
  return total;
}

Tensor<double> widened(const Tensor<float>& from) {
  Tensor<double> to(from.shape());
  for (std::size_t i = 0; i < to.values().size(); ++i) to.values()[i] = from.values()[i];
  return to;
}

/// The first rows of every head of entry b, as a tensor of `shape`.
template <typename T>
Tensor<T> rows_of(const Tensor<T>& from, std::int64_t b, const Shape& shape) {
  Tensor<T> to(shape);
  for (std::int64_t h = 0; h < shape[1]; ++h) {
    for (std::int64_t n = 0; n < shape[2]; ++n) {
      std::ranges::copy(from.row(b, h, n), to.row(0, h, n).begin());
    }
  }
  return to;
}

}  // namespace

Check check_agree(const Outputs& got, const Outputs& want, const Answer& of_got,
                  const Answer& of_want, std::string_view failure) {
  const Check o =
      check_of("O", compare(got.o, widened(want.o), sum(of_got.o_bound, of_want.o_bound)), failure);
  if (o.status == Check::Status::failed) return o;
  return check_of("LSE",
                  compare(got.lse, widened(want.lse), sum(of_got.lse_bound, of_want.lse_bound)),
                  failure);
}

std::optional<std::int64_t> drawn_entry(const Run& run, std::uint64_t stream,
                                        const std::function<bool(std::int64_t b)>& is_eligible) {
  std::vector<std::int64_t> entries;
  for (std::int64_t b = 0; b < run.problem().batch; ++b) {
    if (is_eligible(b)) entries.push_back(b);
  }
  if (entries.empty()) return std::nullopt;
  return entries[static_cast<std::size_t>(random_below(run.the_case().inputs.seed, stream, 0,
                                                       static_cast<std::int64_t>(entries.size())))];
}

DenseEntry dense_entry(const Case& c, const Inputs& inputs, std::int64_t b,
                       const std::vector<std::int64_t>& keys) {
  DenseEntry entry{.the_case = c, .inputs = {}};
  Problem& p = entry.the_case.problem;
  p.batch = 1;
  p.query_len = c.problem.query_len_of(b);
  p.key_len = static_cast<std::int64_t>(keys.size());
  p.length_seed = p.padding_seed = 0;
  entry.the_case.layouts = {};
  entry.inputs = {rows_of(inputs.q, b, query_shape(p)), Tensor<float>(key_shape(p)),
                  Tensor<float>(value_shape(p))};
  for (std::int64_t h = 0; h < p.kv_heads; ++h) {
    for (std::int64_t j = 0; j < p.key_len; ++j) {
      const std::int64_t key = keys[static_cast<std::size_t>(j)];
      std::ranges::copy(inputs.k.row(b, h, key), entry.inputs.k.row(0, h, j).begin());
      std::ranges::copy(inputs.v.row(b, h, key), entry.inputs.v.row(0, h, j).begin());
    }
  }
  return entry;
}

Check check_dense_entry(Run& run, const DenseEntry& entry, std::int64_t b,
                        std::string_view failure) {
  const Problem& p = entry.the_case.problem;
  const Launch dense = run.launch(entry.the_case, entry.inputs);
  const Answer answer = run.answer_to(p, entry.the_case.plan, entry.inputs);
  const Outputs& base = run.base().outputs;
  const Answer& all = run.answer();
  const Outputs mine{.o = rows_of(base.o, b, output_shape(p)),
                     .lse = rows_of(base.lse, b, lse_shape(p))};
  Answer of_mine;
  of_mine.o_bound = rows_of(all.o_bound, b, output_shape(p));
  of_mine.lse_bound = rows_of(all.lse_bound, b, lse_shape(p));
  return check_agree(mine, dense.outputs, of_mine, answer, failure);
}

}  // namespace attest
