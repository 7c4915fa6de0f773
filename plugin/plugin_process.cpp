#include "plugin/plugin_process.hpp"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/run/floating_point_mode.hpp"
#include "core/run/host_mapping.hpp"
#include "plugin/descriptor.hpp"
#include "plugin/plugin_subject.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// Of whoever starts it: it is the plugin's process, too.
constexpr const char* this_program = "/proc/self/exe";

/// Who judges it has limits of his own.
constexpr JsonWorker::Limits patient{.start = std::chrono::minutes(10),
                                     .answer = std::chrono::hours(24)};

JsonWorker::Start start_of(const Judgeable& judged) {
  return {.name = "solution",
          .program = this_program,
          .arguments = {"attest", std::string(plugin_subject_argument), judged.file},
          .environment = {perturbed_memory},
          .limits = {.start = judged.limit, .answer = judged.limit}};
}

BoxRules rules_of(const Judgeable& judged) {
  BoxRules rules = box_of(judged);
  rules.readable = {this_program, judged.file};
  return rules;
}

/// A hostile process may answer anything.
template <typename Read>
auto understood(const Read& read) {
  try {
    return read();
  } catch (const std::exception&) {
    throw KernelError("it answered something else than it was asked");
  }
}

std::optional<std::string> text_from(const Json& answer) {
  return understood([&]() -> std::optional<std::string> {
    const Json& said = answer.at("text");
    if (said.is_null()) return std::nullopt;
    const std::vector<std::byte> bytes = bytes_from(said);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
}

/// Bytes of an output that this call does not ask for; a kernel that gives it writes it all the
/// same.
std::size_t room_for(const AttestTensor& tensor, const AttestKernel& kernel) {
  if (tensor.data != nullptr) return 0;
  for (std::size_t i = 0; i < kernel.missing_output_count; ++i) {
    if (std::string_view(kernel.missing_outputs[i]) == tensor.name) return 0;
  }
  std::int64_t last = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    if (tensor.shape[i] == 0) return 0;
    last += (tensor.shape[i] - 1) * tensor.strides[i];
  }
  return static_cast<std::size_t>(last + 1) * tensor.format.bits / 8;
}

/// Where the buffers of a call lie in the shared memory: each in whole pages of its own, as here.
class CallLayout {
 public:
  explicit CallLayout(const Device& device) : device_(device) {}

  /// [number of the buffer, byte in it]; null for a null pointer.
  Json place(const void* address) {
    if (address == nullptr) return {};
    const BufferPlace* const buffer = device_.buffer_at(address);
    if (buffer == nullptr) throw std::logic_error("a launch's tensor is in none of its buffers");
    const auto [known, is_new] = numbers_.try_emplace(buffer->address, numbers_.size());
    if (is_new) add(*buffer);
    return {known->second, static_cast<const std::byte*>(address) - buffer->address};
  }
  [[nodiscard]] const Json& buffers() const { return buffers_; }
  [[nodiscard]] const std::vector<SharedBytes>& shared() const { return shared_; }
  [[nodiscard]] std::size_t size() const { return end_; }

 private:
  void add(const BufferPlace& buffer) {
    buffers_.push_back(buffer_json(buffer, end_));
    const std::size_t first = end_ + HostMapping::bytes_before(buffer);
    for (const ByteRange& piece : buffer.pieces) {
      shared_.push_back({.name = buffer.name,
                         .here = buffer.address + piece.begin,
                         .at = first + piece.begin,
                         .bytes = piece.end - piece.begin,
                         .is_output = !buffer.is_input});
    }
    end_ += HostMapping::pages_bytes(buffer.size_bytes());
  }

  const Device& device_;
  std::map<const std::byte*, std::size_t> numbers_;
  Json buffers_ = Json::array();
  std::vector<SharedBytes> shared_;
  std::size_t end_ = 0;
};

}  // namespace

/// The functions of the kernel with this number in the descriptor.
class FunctionsThere final : public PluginFunctions {
 public:
  FunctionsThere(std::shared_ptr<PluginProcess> process, std::shared_ptr<const Declaration> says,
                 const AttestKernel& kernel, std::size_t number)
      : process_(std::move(process)),
        declaration_(std::move(says)),
        kernel_(kernel),
        number_(number) {}

  std::optional<std::string> unsupported(const AttestProblem& problem, std::size_t plan) override {
    return text_from(process_->process_.ask(question("unsupported", problem, plan)));
  }
  std::uint64_t scratch_bytes(const AttestProblem& problem, std::size_t plan) override {
    const Json answer = process_->process_.ask(question("scratch_bytes", problem, plan));
    return understood([&] { return answer.at("value").get<std::uint64_t>(); });
  }
  void refine_precision(const AttestProblem& problem, std::size_t plan,
                        AttestPrecision& precision) override {
    Json asked = question("refine_precision", problem, plan);
    asked["precision"] = bytes_json(&precision, sizeof precision);
    const Json answer = process_->process_.ask(std::move(asked));
    const std::vector<std::byte> bytes =
        understood([&] { return bytes_from(answer.at("precision")); });
    if (bytes.size() != sizeof precision) {
      throw KernelError("it answered something else than it was asked");
    }
    std::memcpy(&precision, bytes.data(), sizeof precision);
  }
  std::int64_t first_row(const AttestProblem& problem, std::size_t plan) override {
    const Json answer = process_->process_.ask(question("first_row", problem, plan));
    return understood([&] { return answer.at("value").get<std::int64_t>(); });
  }
  std::optional<std::string> run(const AttestRun& run, Device& device) override {
    CallLayout layout(device);
    Json tensors = Json::array();
    for (std::size_t i = 0; i < run.tensor_count; ++i) {
      const AttestTensor& tensor = *run.tensors[i];
      tensors.push_back({{"struct", bytes_json(&tensor, sizeof tensor)},
                         {"name", tensor.name},
                         {"data", layout.place(tensor.data)},
                         {"starts", layout.place(tensor.starts)},
                         {"room", room_for(tensor, kernel_)}});
    }
    Json asked = question("run", *run.problem, run.plan_index);
    asked["tensors"] = std::move(tensors);
    asked["scratch"] = layout.place(run.scratch);
    asked["scratch_bytes"] = run.scratch_bytes;
    asked["buffers"] = layout.buffers();
    const Json answer = called(std::move(asked), layout);
    const auto control = understood([&] {
      const Json& words = answer.at("control");
      return FloatingPointControl{.mxcsr = words.at(0).get<std::uint32_t>(),
                                  .x87 = words.at(1).get<std::uint16_t>()};
    });
    // What it does to its own thread is done to this one, where a law looks at it.
    if (!take_over(control)) throw KernelError("it returned with other exceptions masked");
    return text_from(answer);
  }

 private:
  [[nodiscard]] Json called(Json asked, const CallLayout& layout) {
    try {
      return process_->process_.call(std::move(asked), layout.shared(), layout.size());
    } catch (const WorkerFault& fault) {
      throw WorkerFault(fmt::format("{}, while the kernel ran", fault.what()));
    }
  }
  [[nodiscard]] Json question(const char* function, const AttestProblem& problem,
                              std::size_t plan) const {
    return {{"ask", function},
            {"kernel", number_},
            {"plan", plan},
            {"problem", bytes_json(&problem, sizeof problem)}};
  }

  std::shared_ptr<PluginProcess> process_;
  std::shared_ptr<const Declaration> declaration_;  ///< the kernel points into it
  AttestKernel kernel_;
  std::size_t number_;
};

PluginProcess::PluginProcess(const std::string& path)
    : process_({.name = fs::path(path).filename().string(),
                .program = this_program,
                .arguments = {"attest", std::string(plugin_subject_argument), path},
                .environment = {perturbed_memory},
                .limits = patient},
               std::nullopt) {}

PluginProcess::PluginProcess(const Judgeable& judged)
    : process_(start_of(judged), rules_of(judged)) {}

std::vector<KernelInfo> PluginProcess::kernels_of(const std::shared_ptr<PluginProcess>& process,
                                                  const std::string& where) {
  const Json& said = process->process_.description();
  const auto declaration = std::make_shared<const Declaration>(
      said.contains("plugin") ? said["plugin"] : Json(Json::array()), where);
  return attest::kernels_of(
      declaration->plugin(), where, [&](std::size_t number, const AttestKernel& kernel) {
        return std::make_shared<FunctionsThere>(process, declaration, kernel, number);
      });
}

}  // namespace attest
