// A CUDA kernel of one's own: online softmax, one warp a query row, fp32 and fp16 inputs. Simple,
// not fast.
//
//   for each key:  m' = max(m, s),  c = exp(m - m'),  p = exp(s - m'),  l = l c + p,  O = O c + p v
//   at the end:    O / l,  LSE = m + ln l
//
// Lane t holds elements t, t + 32, ... of q and O. A dot product is one fma chain a lane, then five
// shuffles.
#include <attest/plugin.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace {

constexpr int largest_head_dim = 256;
constexpr int per_lane = largest_head_dim / 32;

__device__ float load(float x) {
  return x;
}
__device__ float load(__half x) {
  return __half2float(x);
}
__device__ void store(float* to, float x) {
  *to = x;
}
__device__ void store(__half* to, float x) {
  *to = __float2half_rn(x);
}

__device__ int64_t visible_keys(const AttestProblem& p, int64_t query) {
  int64_t count = p.key_len;
  if (p.mask == ATTEST_CAUSAL_TOP_LEFT) count = query + 1;
  if (p.mask == ATTEST_CAUSAL_BOTTOM_RIGHT) count = query + 1 + p.key_len - p.query_len;
  return count < 0 ? 0 : count > p.key_len ? p.key_len : count;
}

__device__ float warp_sum(float x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0U, x, step);
  return x;
}

// What a launch gets: tensors by value, for the list of AttestRun lies in host memory.
struct Tensors {
  AttestTensor q, k, v, o, lse;
};

// Row n of head h of entry b.
template <typename T>
__device__ T* row_of(const AttestTensor& t, int64_t b, int64_t h, int64_t n) {
  return static_cast<T*>(t.data) + attest_offset(&t, b, h, n);
}

// grid (rows / warps of a block, query_heads, batch), block (32, warps)
template <typename T>
__global__ void attend(AttestProblem p, Tensors t) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const int64_t h = blockIdx.y, b = blockIdx.z, kv_head = h / (p.query_heads / p.kv_heads);
  if (i >= p.query_len) return;
  const int lane = threadIdx.x, D = static_cast<int>(p.head_dim);
  const T* q = row_of<T>(t.q, b, h, i);
  const T* k = row_of<T>(t.k, b, kv_head, 0);
  const T* v = row_of<T>(t.v, b, kv_head, 0);
  T* o = row_of<T>(t.o, b, h, i);

  float q_own[per_lane], o_own[per_lane];
  for (int e = 0; e < per_lane; ++e) {
    q_own[e] = lane + 32 * e < D ? load(q[lane + 32 * e]) : 0.0F;
    o_own[e] = 0.0F;
  }
  float m = -INFINITY, l = 0.0F;
  const int64_t visible = visible_keys(p, i);
  for (int64_t j = 0; j < visible; ++j) {
    float dot = 0.0F;
    for (int e = 0; e < per_lane; ++e) {
      if (lane + 32 * e < D) dot = fmaf(q_own[e], load(k[j * t.k.strides[2] + lane + 32 * e]), dot);
    }
    // Rounded by itself: nvcc would fuse the product into the subtraction below, which the declared
    // precision does not say.
    const float s = __fmul_rn(p.scale, warp_sum(dot));
    const float m_new = fmaxf(m, s);
    const float c = expf(m - m_new), weight = expf(s - m_new);
    l = l * c + weight;
    for (int e = 0; e < per_lane; ++e) {
      if (lane + 32 * e < D) {
        o_own[e] = fmaf(weight, load(v[j * t.v.strides[2] + lane + 32 * e]), o_own[e] * c);
      }
    }
    m = m_new;
  }
  for (int e = 0; e < per_lane; ++e) {
    if (lane + 32 * e < D) store(o + lane + 32 * e, visible > 0 ? o_own[e] / l : 0.0F);
  }
  if (lane == 0) *row_of<float>(t.lse, b, h, i) = visible > 0 ? m + logf(l) : -INFINITY;
}

const char* unsupported(const AttestProblem* p, const AttestPlan*) {
  if (p->query_heads > 65535 || p->batch > 65535)
    return "more than 65535 heads or batches: the grid ends there";
  return nullptr;
}

const char* run(const AttestRun* run) {
  const AttestProblem& p = *run->problem;
  const Tensors tensors{*attest_tensor(run, "q"), *attest_tensor(run, "k"),
                        *attest_tensor(run, "v"), *attest_tensor(run, "o"),
                        *attest_tensor(run, "lse")};
  const auto warps = static_cast<unsigned>(
      run->plan->fields[0].value);  // all our plans have one field: query_tile
  const dim3 grid(static_cast<unsigned>((p.query_len + warps - 1) / warps),
                  static_cast<unsigned>(p.query_heads), static_cast<unsigned>(p.batch));
  const auto stream = static_cast<cudaStream_t>(run->stream);
  if (attest_is(p.element_type, ATTEST_FLOAT, 32)) {
    attend<float><<<grid, dim3(32, warps), 0, stream>>>(p, tensors);
  } else {
    attend<__half><<<grid, dim3(32, warps), 0, stream>>>(p, tensors);
  }
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

const AttestFormat types[] = {ATTEST_FP32, ATTEST_FP16};
const AttestPlanField rows[] = {{"query_tile", 1}, {"query_tile", 4}, {"query_tile", 8}};
const AttestPlan plans[] = {{&rows[0], 1}, {&rows[1], 1}, {&rows[2], 1}};

AttestKernel describe() {
  static AttestPrecision precision{};
  precision.size = sizeof precision;
  precision.weight_format = ATTEST_FP32;  // P is never rounded to fp16
  AttestKernel kernel{};
  kernel.size = sizeof kernel;
  kernel.memory_space = ATTEST_CUDA;
  kernel.name = "my_cuda_attention";
  kernel.summary = "online softmax, one warp a row";
  kernel.element_types = types;
  kernel.element_type_count = sizeof types / sizeof types[0];
  kernel.masks = ATTEST_NO_MASK | ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT;
  kernel.head_dim_max = largest_head_dim;
  kernel.plans = plans;
  kernel.plan_count = sizeof plans / sizeof plans[0];
  kernel.precision = &precision;
  kernel.unsupported = unsupported;
  kernel.run = run;
  return kernel;
}

}  // namespace

extern "C" const AttestPlugin* attest_plugin(uint32_t) {
  static const AttestKernel kernel = describe();
  static const AttestKernel* const kernels[] = {&kernel};
  static const AttestPlugin plugin{sizeof plugin, ATTEST_PLUGIN_VERSION, kernels, 1};
  return &plugin;
}
