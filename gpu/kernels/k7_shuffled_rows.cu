// K7, shuffled rows [the step after S3's last kernel in its author's repository]: maxima and sums
// of a row without shared memory (shuffled_rows.cuh).
//
// Bank conflicts as in K6: 4-way on Q (K8's step). The author's step also makes the query tile the
// fastest grid axis. K3 to K6 here have it so.
#include "core/run/registry.hpp"
#include "gpu/kernels/shuffled_rows.cuh"

namespace attest {
namespace {

const KernelRegistration registration{ShuffledRows<this_executor, 0>::info(
    "k7_shuffled_rows",
    "K6 with row statistics by shuffles, weights in registers until stored once",
    "K7 [the next step in the repository of S3's author]")};

}  // namespace
}  // namespace attest
