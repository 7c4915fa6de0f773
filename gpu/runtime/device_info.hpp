#pragma once

#include <cstdint>
#include <string>

namespace attest {

/// Properties of a GPU. Sizes in bytes.
struct DeviceInfo {
  std::string name;
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  double memory_bytes_per_s = 0;  ///< by the memory's clock and the width of its bus; 0: not told
  std::int64_t l2_bytes = 0;
  std::int64_t shared_per_block_bytes = 0;        ///< without asking: 48 KiB
  std::int64_t shared_per_block_optin_bytes = 0;  ///< after cudaFuncSetAttribute
  std::int64_t shared_per_multiprocessor_bytes = 0;
  int registers_per_multiprocessor = 0;
  int max_threads_per_block = 0;
  std::int64_t max_grid_x = 0, max_grid_y = 0, max_grid_z = 0;
  std::string pci_bus_id{};  ///< e.g. `0000:1b:00.0`
  std::string driver;        ///< highest CUDA version that the driver supports, e.g. `13.0`
  std::string runtime;       ///< CUDA version this program was built with
};

/// Properties of a device. Throws CudaError when `ordinal` is none.
[[nodiscard]] DeviceInfo device_info(int ordinal);

/// One line: `NVIDIA H200, sm_90, 132 SMs, 139.8 GiB, 4.9 TB/s, PCI 0000:1b:00.0, driver CUDA 13.0,
/// runtime CUDA 13.0`, which core/run/card reads. The bus id tells the GPUs of a machine apart,
/// whose clocks and temperatures differ.
[[nodiscard]] std::string to_string(const DeviceInfo& info);

/// One line why kernels built for `all_gpus`, or for sm_90a only, do not run on compute capability
/// major.minor; empty when they do.
[[nodiscard]] std::string why_not_on(int major, int minor, bool all_gpus);

/// One line why device 0 cannot run our kernels: no driver, a driver that is too old, no device, a
/// device that they were not built for. Empty when it can. Prints nothing and leaves no error
/// behind.
[[nodiscard]] std::string why_no_gpu();

}  // namespace attest
