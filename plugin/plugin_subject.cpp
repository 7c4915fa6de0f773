#include "plugin/plugin_subject.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/subprocess.hpp"
#include "core/run/fault_words.hpp"
#include "core/run/floating_point_mode.hpp"
#include "core/run/fork_watch.hpp"
#include "core/run/host_mapping.hpp"
#include "core/run/host_memory_device.hpp"
#include "plugin/claim.hpp"
#include "plugin/declaration.hpp"
#include "plugin/plugin_functions.hpp"

namespace attest {
namespace {

constexpr int memory_file = 3;

/// The socket to who judges, away from the numbers that a careless plugin could write to.
class Channel {
 public:
  Channel() : socket_(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 100)) {
    const OwnedFd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (socket_.get() < 0 || nothing.get() < 0 || dup2(nothing.get(), STDIN_FILENO) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
      throw MachineError("attest plugin-subject is started by attest, not by hand");
    }
  }
  void say(const Json& what) {
    // Texts of plugins may be no UTF-8.
    (void)send_all(socket_.get(), what.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n');
  }
  /// The next request; nothing where there will be none.
  std::optional<Json> next() {
    std::array<char, 16384> buffer{};
    while (true) {
      if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
        const Json request = parse_json(std::string_view(unread_).substr(0, end));
        unread_.erase(0, end + 1);
        return request;
      }
      const ssize_t size = read(socket_.get(), buffer.data(), buffer.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return std::nullopt;
      unread_.append(buffer.data(), static_cast<std::size_t>(size));
    }
  }

 private:
  OwnedFd socket_;
  std::string unread_;
};

/// The kernels of the loaded plugin, for ever.
class LoadedHere {
 public:
  /// Throws InvalidInput.
  explicit LoadedHere(const std::string& path) {
    // Linked with -ffast-math, an object makes its loader flush denormals [gcc(1)].
    const FloatingPointMode mode;
    void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr) throw InvalidInput(last_error(path));
    void* const address = dlsym(object, "attest_plugin");
    if (address == nullptr) {
      throw InvalidInput("exports no function attest_plugin(); see attest/plugin.h");
    }
    plugin_ = reinterpret_cast<decltype(&attest_plugin)>(address)(ATTEST_PLUGIN_VERSION);
  }
  [[nodiscard]] const AttestPlugin* plugin() const { return plugin_; }
  [[nodiscard]] AttestKernel kernel(std::size_t number) const {
    const AttestPlugin plugin = checked_copy(*plugin_, "the plugin");
    if (number >= plugin.kernel_count) throw InvalidInput("there is no such kernel");
    return checked_copy(*plugin.kernels[number], "the plugin");
  }

 private:
  /// Who judges names the file as he likes.
  static std::string last_error(const std::string& path) {
    const char* const error = dlerror();
    std::string text = error == nullptr ? "no reason is given" : error;
    if (text.starts_with(path + ": ")) text.erase(0, path.size() + 2);
    return text;
  }

  const AttestPlugin* plugin_ = nullptr;
};

/// The buffers of a call, in pages of the shared memory.
class SharedBuffers {
 public:
  /// Those of the call before, where they are the same.
  void map(const Json& described) {
    if (described == described_) return;
    mappings_.clear();
    described_ = described;
    for (const Json& one : described) {
      BufferPlace place{.name = one.at("name"),
                        .accessible = {one.at("first"), one.at("last")},
                        .alignment = one.at("alignment"),
                        .is_input = one.at("is_input"),
                        .ends_at_page = one.at("ends_at_page")};
      place.pieces = {{0, one.at("size").get<std::size_t>()}};
      mappings_.emplace_back(std::move(place), memory_file, one.at("at").get<std::size_t>());
    }
  }
  [[nodiscard]] std::byte* address(const Json& place) const {
    if (place.is_null()) return nullptr;
    return mappings_.at(place.at(0).get<std::size_t>()).address() + place.at(1).get<std::size_t>();
  }

 private:
  Json described_;
  std::vector<HostMapping> mappings_;
};

/// Of plugin.h, whose pointers are those of another process.
template <typename Struct>
Struct struct_from(const Json& json) {
  const std::vector<std::byte> bytes = bytes_from(json);
  Struct made{};
  std::memcpy(&made, bytes.data(), std::min(bytes.size(), sizeof made));
  return made;
}

Json text_json(const std::optional<std::string>& text) {
  return {{"text", text ? bytes_json(text->data(), text->size()) : Json()}};
}

Json answer_to_run(const Json& request, const AttestKernel& kernel, const AttestProblem& problem,
                   std::size_t plan, SharedBuffers& buffers) {
  buffers.map(request.at("buffers"));
  const Json& asked = request.at("tensors");
  std::vector<AttestTensor> tensors;
  std::vector<const AttestTensor*> pointers;
  std::vector<std::vector<std::byte>> unasked;  // outputs that nobody asked for
  tensors.reserve(asked.size());
  for (const Json& one : asked) {
    auto& tensor = tensors.emplace_back(struct_from<AttestTensor>(one.at("struct")));
    tensor.name = one.at("name").get_ref<const std::string&>().c_str();
    tensor.data = buffers.address(one.at("data"));
    tensor.starts = reinterpret_cast<const std::int32_t*>(buffers.address(one.at("starts")));
    if (const auto room = one.at("room").get<std::size_t>(); room > 0) {
      tensor.data = unasked.emplace_back(room).data();
    }
    pointers.push_back(&tensor);
  }
  const AttestRun run{.size = sizeof(AttestRun),
                      .plan_index = static_cast<std::uint32_t>(plan),
                      .problem = &problem,
                      .plan = &kernel.plans[plan],
                      .tensors = pointers.data(),
                      .tensor_count = pointers.size(),
                      .scratch = buffers.address(request.at("scratch")),
                      .scratch_bytes = request.at("scratch_bytes").get<std::uint64_t>(),
                      .stream = nullptr};
  const FloatingPointMode mode;
  const ForkWatch watch;
  HostMemoryDevice nowhere;  // its memory is not what the tensors are in
  Json answer = text_json(functions_here(kernel)->run(run, nowhere));
  const FloatingPointControl control = floating_point_control();
  answer["control"] = {control.mxcsr, control.x87};
  if (watch.child_came_back()) {
    return {{"error", "it called fork(), and the child came back from the launch as well"},
            {"fatal", true}};
  }
  return answer;
}

Json answer_to(const Json& request, const LoadedHere& plugin, SharedBuffers& buffers) {
  const AttestKernel kernel = plugin.kernel(request.at("kernel").get<std::size_t>());
  const auto plan = request.at("plan").get<std::size_t>();
  const auto function = request.at("ask").get<std::string>();
  auto problem = struct_from<AttestProblem>(request.at("problem"));
  problem.user_data = kernel.user_data;  // a process before this one had it elsewhere
  if (plan >= kernel.plan_count) throw InvalidInput("there is no such plan");
  if (function == "run") return answer_to_run(request, kernel, problem, plan, buffers);
  const std::shared_ptr<PluginFunctions> functions = functions_here(kernel);
  if (function == "unsupported") return text_json(functions->unsupported(problem, plan));
  if (function == "scratch_bytes") return {{"value", functions->scratch_bytes(problem, plan)}};
  if (function == "first_row") return {{"value", functions->first_row(problem, plan)}};
  auto precision = struct_from<AttestPrecision>(request.at("precision"));
  functions->refine_precision(problem, plan, precision);
  return {{"precision", bytes_json(&precision, sizeof precision)}};
}

}  // namespace

Json buffer_json(const BufferPlace& place, std::size_t at) {
  return {{"name", place.name},           {"at", at},
          {"size", place.size_bytes()},   {"first", place.accessible.begin},
          {"last", place.accessible.end}, {"alignment", place.alignment},
          {"is_input", place.is_input},   {"ends_at_page", place.ends_at_page}};
}

void run_plugin_subject(const std::string& path) {
  static std::array<char, 200> fault_text;
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);  // a box has done so
  const rlimit no_core{0, 0};
  (void)setrlimit(RLIMIT_CORE, &no_core);
  Channel channel;
  describe_faults_in(fault_text, STDERR_FILENO);
  std::optional<LoadedHere> plugin;
  try {
    channel.say({{"doing", "it was loaded"}});
    plugin.emplace(path);
    channel.say({{"plugin", declaration_json(plugin->plugin())}});
  } catch (const std::exception& error) {
    channel.say({{"error", error.what()}});
    std::_Exit(0);
  } catch (...) {
    channel.say({{"error", "a C++ exception left it while it was loaded"}});
    std::_Exit(0);
  }
  SharedBuffers buffers;
  while (const std::optional<Json> request = channel.next()) {
    Json answer;
    try {
      answer = answer_to(*request, *plugin, buffers);
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    if (request->contains("number")) answer["number"] = (*request)["number"];
    (void)std::fflush(stdout);  // what it printed
    channel.say(answer);
  }
  // What a plugin left behind must not run now.
  std::_Exit(0);
}

}  // namespace attest
