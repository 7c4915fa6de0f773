// Attention of fp32 in C++ for tests, exported by tvm-ffi: right, and wrong in one way.
#include <tvm/ffi/tvm_ffi.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

using tvm::ffi::TensorView;

// q, k, v, o [B, H, N, D], contiguous.
void attend_to(TensorView q, TensorView k, TensorView v, float scale, TensorView o, int64_t keys) {
  if (q.dtype().bits != 32) TVM_FFI_THROW(TypeError) << "fp32 only";
  if (k.size(1) != q.size(1)) TVM_FFI_THROW(ValueError) << "as many heads of K and V";
  const int64_t queries = q.size(2), stored_keys = k.size(2), dim = q.size(3);
  const auto row = [&](const TensorView& tensor, int64_t n) {
    return static_cast<float*>(tensor.data_ptr()) + n * dim;
  };
  for (int64_t n = 0; n < q.size(0) * q.size(1) * queries; ++n) {
    const int64_t first = n / queries * stored_keys;
    std::vector<float> weights;
    float largest = -std::numeric_limits<float>::infinity(), total = 0;
    for (int64_t j = 0; j < keys; ++j) {
      float dot = 0;
      for (int64_t c = 0; c < dim; ++c) dot += row(q, n)[c] * row(k, first + j)[c];
      weights.push_back(dot * scale);
      largest = std::max(largest, weights.back());
    }
    for (float& weight : weights) total += weight = std::exp(weight - largest);
    for (int64_t c = 0; c < dim; ++c) {
      float sum = 0;
      for (int64_t j = 0; j < keys; ++j) sum += weights[j] * row(v, first + j)[c];
      row(o, n)[c] = keys > 0 ? sum / total : 0;
    }
  }
}

void attend(TensorView q, TensorView k, TensorView v, double scale, TensorView o) {
  attend_to(q, k, v, static_cast<float>(scale), o, k.size(2));
}

void attend_without_the_last_key(TensorView q, TensorView k, TensorView v, TensorView o,
                                 double scale) {
  attend_to(q, k, v, static_cast<float>(scale), o, k.size(2) - (k.size(2) > 8 ? 1 : 0));
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(attend, attend);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(attend_without_the_last_key, attend_without_the_last_key);
