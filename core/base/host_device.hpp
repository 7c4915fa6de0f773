#pragma once

/// Marks a function that kernels call as well as host code: one definition serves both.
#ifdef __CUDACC__
#define ATTEST_HOST_DEVICE __host__ __device__
#else
#define ATTEST_HOST_DEVICE
#endif
