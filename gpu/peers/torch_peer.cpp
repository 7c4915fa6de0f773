#include "gpu/peers/torch_peer.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/python_place.hpp"
#include "core/base/python_worker.hpp"
#include "core/run/kernel.hpp"
#include "gpu/peers/embedded_scripts.hpp"
#include "gpu/peers/peer_call.hpp"
#include "gpu/runtime/cuda_device.hpp"
#include "gpu/runtime/device_info.hpp"
#include "gpu/runtime/shared_memory.hpp"
#include "gpu/runtime/tensor_map.hpp"

namespace attest {
namespace {

/// Asks Python which modules it could import, without importing them: PyTorch takes seconds.
constexpr std::string_view which_modules = R"(
import importlib.util, json
def is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # of its package
        return False
print(json.dumps({name: is_there(name) for name in ("torch", "triton", "fa3_fwd", "flash_attn.cute", "flashinfer")}))
)";

std::string why_no_module(const std::string& name) {
  if (!why_no_gpu().empty()) return "";  // what every GPU kernel lacks is said elsewhere
  static const auto found = []() -> std::pair<Json, std::string> {
    try {
      const std::array scripts{which_modules};
      return {PythonWorker("Python", scripts, {}).greeting(), ""};
    } catch (const MachineError& error) {
      return {Json(), error.what()};
    }
  }();
  if (!found.second.empty()) return found.second;
  if (found.first.value(name, false)) return "";
  return fmt::format("{} has no module {}; set ATTEST_PYTHON to a Python that has it",
                     python_program(), name);
}

std::string why_no_hopper_module(const std::string& name) {
  if (std::string reason = why_no_torch(); !reason.empty()) return reason;
  if (std::string reason = why_no_module(name); !reason.empty()) return reason;
  return why_no_gpu().empty() ? why_not_hopper() : "";
}

Json request_of(const std::string& name, const PeerCall& call, const SharedMemory& memory) {
  Json request{{"do", "run"},
               {"kernel", name},
               {"type", format_of(call.problem.element_type).name},
               {"mask", name_of(call.problem.mask)},
               {"scale", call.problem.scale},
               {"softcap", call.problem.softcap},
               {"plan",
                {{"query_tile", call.plan.query_tile},
                 {"key_tile", call.plan.key_tile},
                 {"warps", call.plan.warps},
                 {"stages", call.plan.stages}}}};
  for (const PeerTensor& tensor : call.tensors) {
    request[tensor.name] = {{"at", memory.place_of(tensor.first)},
                            {"shape", tensor.shape},
                            {"strides", tensor.strides}};
    if (tensor.type) request[tensor.name]["type"] = format_of(*tensor.type).name;
  }
  if (call.most_queries > 0) request["most_queries"] = call.most_queries;
  if (call.most_keys > 0) request["most_keys"] = call.most_keys;
  return request;
}

std::vector<const void*> addresses_of(const PeerCall& call) {
  std::vector<const void*> addresses;
  for (const PeerTensor& tensor : call.tensors) addresses.push_back(tensor.first);
  return addresses;
}

/// The worker of a host thread and the memory shared with it.
class TorchPeer {
 public:
  static TorchPeer& of_this_thread() {
    thread_local TorchPeer peer;
    return peer;
  }

  void launch(const std::string& name, const PeerCall& call, Device& device) {
    Json request = prepared(name, call, device);
    copied_.reset();
    memory_.copy_in(device.native_stream());
    request["launches"] = 0;
    request["copied"] = true;
    (void)worker_->ask(request);
    memory_.copy_back(device.native_stream());
    note_library(worker_->greeting().value("ready", "PyTorch"));
  }

  double time(const std::string& name, const PeerCall& call, Device& device,
              LaunchesInRow launches) {
    Json request = prepared(name, call, device);
    auto now = state_of(device);
    request["copied"] = !now || now != copied_;
    if (request["copied"]) {
      memory_.copy_in(device.native_stream());
      copied_ = std::move(now);
    }
    request["launches"] = launches.count;
    request["graph"] = launches.in_graph;
    const Json answer = worker_->ask(request);
    memory_.copy_back(device.native_stream());
    if (!answer.contains("ms") || !answer["ms"].is_number()) {
      throw MachineError(fmt::format("the PyTorch worker gave no time: {}", answer.dump()));
    }
    if (answer.contains("ran")) kernels_ = answer["ran"].dump();
    note_library(fmt::format("{} ran {}", worker_->greeting().value("ready", "PyTorch"), kernels_));
    return answer["ms"].get<double>();
  }

  [[nodiscard]] const std::string& kernels() const { return kernels_; }

 private:
  /// Originals that the copies are of, and the version of their memory. Addresses alone would not
  /// do: others may hold their inputs there now. Whose launch asks makes no difference: peers take
  /// turns.
  struct Copied {
    std::uint64_t version = 0;
    std::vector<const std::byte*> originals;
    friend bool operator==(const Copied&, const Copied&) = default;
  };
  /// State of the originals; nothing where the device does not say when its memory changed.
  [[nodiscard]] std::optional<Copied> state_of(const Device& device) const {
    const auto* const cuda = dynamic_cast<const CudaDevice*>(&device);
    if (cuda == nullptr) return std::nullopt;
    return Copied{cuda->memory_version(), memory_.originals()};
  }

  /// The worker runs and has the memory open, in which there is room.
  Json prepared(const std::string& name, const PeerCall& call, Device& device) {
    device.synchronize();
    memory_.find_buffers(addresses_of(call));
    if (!worker_ || !worker_->is_alive()) {
      memory_.drop();
      const std::array scripts{torch_worker_script(), triton_flash_script(), torch_decode_script(),
                               torch_backward_script()};
      worker_.emplace("PyTorch worker", scripts, PythonWorker::Limits{});
    }
    if (!memory_.has_room()) open_memory();
    return request_of(name, call, memory_);
  }

  void open_memory() {
    copied_.reset();
    try {
      (void)worker_->ask({{"do", "close"}});
      memory_.make_room();
      (void)worker_->ask(
          {{"do", "open"}, {"handle", memory_.handle()}, {"bytes", memory_.size_bytes()}});
    } catch (const KernelError& error) {  // no kernel has run
      worker_.reset();
      memory_.drop();
      throw MachineError(error.what());
    }
  }

  SharedMemory memory_;
  std::optional<PythonWorker> worker_;  // ends before its memory is freed
  std::optional<Copied> copied_;        ///< nothing: not the inputs of a timed launch
  std::string kernels_;
};

}  // namespace

std::string why_no_torch() {
  return why_no_module("torch");
}

std::string why_no_triton() {
  const std::string reason = why_no_torch();
  return reason.empty() ? why_no_module("triton") : reason;
}

std::string why_no_flash_attention_3() {
  return why_no_hopper_module("fa3_fwd");
}

std::string why_no_flash_attention_4() {
  return why_no_hopper_module("flash_attn.cute");
}

std::string why_no_flashinfer() {
  const std::string reason = why_no_torch();
  return reason.empty() ? why_no_module("flashinfer") : reason;
}

void launch_torch_peer(const std::string& name, const PeerCall& call, Device& device) {
  TorchPeer::of_this_thread().launch(name, call, device);
}

double time_torch_peer(const std::string& name, const PeerCall& call, Device& device,
                       LaunchesInRow launches) {
  return TorchPeer::of_this_thread().time(name, call, device, launches);
}

const std::string& last_torch_kernels() {
  return TorchPeer::of_this_thread().kernels();
}

}  // namespace attest
