#pragma once

// Devices of the ranks of a group. Both sides define
//   RankDevices          launches and copies of every rank, and who waits for whom, driven by one
//                        host thread
// and the GPU's
//   ProcessDevices       the same of a group of processes, each of which drives its own rank
//   ask_ranks, RankVisit how a launch comes to those processes
#ifdef __CUDACC__
#include "gpu/runtime/process_devices.hpp"
#include "gpu/runtime/rank_devices.hpp"
#include "gpu/runtime/rank_launch.hpp"
#else
#include "gpu/simt/rank_devices.hpp"
#endif
