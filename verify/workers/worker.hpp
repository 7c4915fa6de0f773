#pragma once

#include <functional>
#include <string_view>

#include "verify/judge/phase.hpp"
#include "verify/workers/worker_protocol.hpp"

namespace attest {
/// First argument of a program that was started as a worker (WorkerProcess starts its own
/// executable again, because CUDA does not survive a fork).
inline constexpr std::string_view worker_argument = "worker";
/// Behind it: nobody knows yet what it will load (WorkerProcess::ahead).
inline constexpr std::string_view worker_ahead_flag = "--ahead";

/// The life of a worker: loads what its first message names through `load`, then judges a case a
/// line until its parent hangs up. Kernels run in this process; what they print goes to the parent,
/// which shows it with their failures. A kernel whose launch fails is reported as crashed,
/// and the process ends: after a sticky CUDA error it could not go on. `prepare`, if any, is called
/// before the first message is waited for. Returns the exit code.
[[nodiscard]] int run_worker(const std::function<void(const WorkerSetup&)>& load,
                             const std::function<void()>& prepare = {});

}  // namespace attest
