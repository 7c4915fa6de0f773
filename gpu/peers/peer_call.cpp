#include "gpu/peers/peer_call.hpp"

#include "core/operations/forward.hpp"

namespace attest {
namespace {

PeerTensor tensor(std::string name, const void* first, const Shape& shape, const Strides& strides) {
  return {std::move(name),
          first,
          {shape.begin(), shape.end()},
          {strides.batch, strides.head, strides.row, 1},
          std::nullopt};
}

PeerTensor lse_tensor(const void* first, const Shape& rows) {
  return {"lse",
          first,
          {rows[0], rows[1], rows[2]},
          {rows[1] * rows[2], rows[2], std::int64_t{1}},
          std::nullopt};
}

PeerTensor integers(std::string name, const std::int32_t* first, std::int64_t rows,
                    std::int64_t columns) {
  return {std::move(name), first, {rows, columns}, {columns, 1}, std::nullopt};
}

/// Shape of a tensor that is packed along its rows where the entries have lengths: as one entry.
Shape packed(const Problem& p, Shape shape, const std::vector<std::int32_t>& starts) {
  if (p.length_seed == 0) return shape;
  return {1, shape[1], starts.back(), shape[3]};
}

/// Shape of K or V: pages take the place of entries.
Shape stored_keys(const ForwardArguments& a, const Shape& shape) {
  if (a.page_table.page_size == 0) return packed(a.problem, shape, key_starts(a.problem));
  return {a.page_table.pool_pages, shape[1], a.page_table.page_size, shape[3]};
}

/// Adds the first rows of entries, where these have lengths, and the dense table, where K and V lie
/// in pages.
void add_arrays(PeerCall& call, const ForwardArguments& a) {
  const std::int64_t batch = a.problem.batch;
  if (a.query_starts != nullptr) {
    call.tensors.push_back(integers("query_starts", a.query_starts, 1, batch + 1));
    call.most_queries = a.problem.query_len;
  }
  if (a.key_starts != nullptr) {
    call.tensors.push_back(integers("key_starts", a.key_starts, 1, batch + 1));
    call.most_keys = a.problem.key_len;
  }
  if (a.page_table.page_size == 0) return;
  call.tensors.push_back(integers("pages", a.page_table.pages, batch, a.page_table.columns));
  call.tensors.push_back(integers("key_lengths", a.page_table.lengths, 1, batch));
}

}  // namespace

PeerCall call_of(const ForwardArguments& a) {
  const Problem& p = a.problem;
  const std::vector<std::int32_t> starts = query_starts(p);
  PeerCall call{.problem = p, .plan = a.plan};
  call.tensors = {tensor("q", a.q, packed(p, query_shape(p), starts), a.q_strides),
                  tensor("k", a.k, stored_keys(a, key_shape(p)), a.k_strides),
                  tensor("v", a.v, stored_keys(a, value_shape(p)), a.v_strides),
                  tensor("o", a.o, packed(p, output_shape(p), starts), a.o_strides),
                  lse_tensor(a.lse, packed(p, {p.batch, p.query_heads, p.query_len, 1}, starts))};
  add_arrays(call, a);
  return call;
}

PeerCall call_of(const QuantisedArguments& a) {
  PeerCall call = call_of(static_cast<const ForwardArguments&>(a));
  const Operation& operation = *a.problem.operation;
  for (std::size_t i = 0; i < 3; ++i) {  // Q, K and V
    call.tensors[i].type = operation[InputIndex{i}].format(a.problem);
  }
  const auto add = [&](InputIndex index, const float* first, const Strides& strides) {
    const TensorSpec& scales = operation[index];
    const Shape shape = scales.shape(a.problem);
    if (shape[3] == 0) return;
    call.tensors.push_back(tensor(std::string(scales.name), first, shape, strides));
    call.tensors.back().type = ElementType::fp32;
  };
  add(quantised::q_scale, a.q_scale, a.q_scale_strides);
  add(quantised::k_scale, a.k_scale, a.k_scale_strides);
  add(quantised::v_scale, a.v_scale, a.v_scale_strides);
  return call;
}

PeerCall call_of(const BackwardArguments& a) {
  const Problem& p = a.problem;
  return {.problem = p,
          .plan = a.plan,
          .tensors = {tensor("q", a.q, query_shape(p), a.q_strides),
                      tensor("k", a.k, key_shape(p), a.k_strides),
                      tensor("v", a.v, value_shape(p), a.v_strides),
                      tensor("o", a.o, output_shape(p), a.o_strides),
                      lse_tensor(a.lse, {p.batch, p.query_heads, p.query_len, 1}),
                      tensor("d_o", a.d_o, output_shape(p), a.do_strides),
                      tensor("dq", a.dq, query_shape(p), a.dq_strides),
                      tensor("dk", a.dk, key_shape(p), a.dk_strides),
                      tensor("dv", a.dv, value_shape(p), a.dv_strides)}};
}

}  // namespace attest
