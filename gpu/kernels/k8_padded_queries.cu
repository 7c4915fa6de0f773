// K8, padded queries [ours]: K7 with rows of Q one float apart from a power of two
// (shuffled_rows.cuh).
//
// S3 pads K and S and stops there. The 4 tile rows of a warp read the same dim of rows of Q that
// are TM * D floats apart: with D = 64 one bank, a 4-way conflict in every step of Q K^T. In rows
// of D + 1 floats they are different banks. No read has a conflict then; writes have, up to 4-way,
// where neighbours write four floats apart: P, and the parts of vectors from global memory.
#include "core/run/registry.hpp"
#include "gpu/kernels/shuffled_rows.cuh"

namespace attest {
namespace {

const KernelRegistration registration{ShuffledRows<this_executor, 1>::info(
    "k8_padded_queries", "K7 with padded Q: reads without bank conflicts", "K8, after K7")};

}  // namespace
}  // namespace attest
