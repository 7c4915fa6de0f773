#pragma once

// Devices of the ranks of a group, all driven by one host thread. Both sides define
//   RankDevices          launches and copies of every rank, and who waits for whom
#ifdef __CUDACC__
#include "gpu/runtime/rank_devices.hpp"
#else
#include "gpu/simt/rank_devices.hpp"
#endif
