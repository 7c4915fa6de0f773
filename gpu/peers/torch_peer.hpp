#pragma once

#include <string>

#include "core/run/kernel.hpp"
#include "gpu/peers/peer_call.hpp"

namespace attest {

/// Kernels of PyTorch, Triton, FlashAttention-3 and -4 and FlashInfer, run by torch_worker.py in
/// one process for each host thread. The names are the worker's. `launch` copies the buffers to
/// memory that both processes see, has the worker write the outputs there and copies them back.
/// `timed_launch` copies the inputs only where they are not there yet, and takes the worker's time
/// of launches in a row: neither copies nor messages are in it.

/// One sentence where Python or the module is missing, or an empty string; asked once a process.
[[nodiscard]] std::string why_no_torch();
[[nodiscard]] std::string why_no_triton();
[[nodiscard]] std::string why_no_flash_attention_3();
[[nodiscard]] std::string why_no_flash_attention_4();
[[nodiscard]] std::string why_no_flashinfer();

/// Throw KernelError with PyTorch's or Triton's words, MachineError when the worker cannot work.
void launch_torch_peer(const std::string& name, const PeerCall& call, Device& device);
/// Milliseconds of one launch, the mean over some in a row. In a graph, which the worker captures,
/// nothing of what Python costs is in the time.
[[nodiscard]] double time_torch_peer(const std::string& name, const PeerCall& call, Device& device,
                                     LaunchesInRow launches);

/// Names of the GPU kernels that the last timed launch of this host thread ran, as the profiler saw
/// them; empty before one.
[[nodiscard]] const std::string& last_torch_kernels();

}  // namespace attest
