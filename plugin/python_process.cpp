#include "plugin/python_process.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/python_place.hpp"
#include "core/base/python_worker.hpp"
#include "core/operations/select.hpp"
#include "plugin/python_tensors.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t tensor_alignment = 256;
/// Besides its answer it may compile, and import what is large. Who judges it has limits of his
/// own.
constexpr JsonWorker::Limits patient{.start = std::chrono::minutes(10),
                                     .answer = std::chrono::minutes(10)};

/// python/attest_kernels/worker.py: beside the program in a wheel, else in the source tree.
fs::path worker_script() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path in_wheel = program.parent_path().parent_path() / "worker.py";
  if (fs::exists(in_wheel, error)) return in_wheel;
  return ATTEST_SOURCE_DIR "/python/attest_kernels/worker.py";
}

JsonWorker::Start start_of(const std::string& text) {
  JsonWorker::Start start = start_of_script(text, worker_script().string(), {text}, false);
  start.limits = patient;
  return start;
}

/// A process that waits for what it is to judge. Where the file lies on this machine teaches nobody
/// anything.
std::unique_ptr<SubjectProcess> started_in_box(const Judgeable& judged) {
  const PythonPlace& place = python_place();
  if (!place.has_numpy) {
    throw MachineError(
        fmt::format("{} has no NumPy; ATTEST_PYTHON names a Python that has it", place.program));
  }
  BoxRules rules = box_of(judged);
  rules.readable = place.folders;
  rules.readable.push_back(worker_script().parent_path().parent_path().string());
  return std::make_unique<SubjectProcess>(
      start_of_script("solution", worker_script().string(), {}, true), std::move(rules));
}

/// Of start_python_ahead(); null: there is none.
std::unique_ptr<SubjectProcess> ahead;

}  // namespace

void start_python_ahead() {
  try {
    ahead = started_in_box({});
  } catch (const MachineError&) {
  }
}

PythonProcess::PythonProcess(const std::string& text)
    : process_(std::make_unique<SubjectProcess>(start_of(text), std::nullopt)) {}

PythonProcess::PythonProcess(const Judgeable& judged)
    : process_(ahead && !judged.starts_processes ? std::move(ahead) : started_in_box(judged)) {
  const auto introduction = [judged, folder = process_->scratch()]() -> Json {
    const fs::path file(judged.file);
    std::error_code error;
    if (!fs::copy_file(file, folder / file.filename(), fs::copy_options::overwrite_existing,
                       error)) {
      throw MachineError(fmt::format("{}: {}", judged.file, error.message()));
    }
    return {{"load", file.filename().string() + ":" + judged.name}, {"asked", judged.asked}};
  };
  process_->introduce(introduction, {.start = judged.limit, .answer = judged.limit});
}

void PythonProcess::launch(const Arguments& a) {
  Json described = Json::object();
  std::vector<SharedBytes> shared;
  std::size_t end = 0;
  const auto add = [&](std::string_view type, const std::vector<std::int64_t>& shape,
                       SharedBytes one) {
    described[one.name] = {{"type", type}, {"at", end}, {"shape", shape}};
    one.at = end;
    end = (end + one.bytes + tensor_alignment) / tensor_alignment * tensor_alignment;
    shared.push_back(std::move(one));
  };
  for (const PythonTensor& tensor : python_tensors(a)) {
    add(format_of(tensor.type).name, tensor.shape,
        {.name = tensor.name,
         .here = tensor.here,
         .bytes = tensor.bytes,
         .is_output = tensor.is_output});
  }
  const Problem& p = a.problem;
  Json modified = Json::object();
  if (p.softcap > 0) modified["softcap"] = p.softcap;
  if (p.operation == &select_operation) modified["top_k"] = p.top_k;
  bool is_causal = is_window(p.mask) ? p.window.right == 0 : p.mask != Mask::none;
  std::vector<std::uint8_t> pairs = visible_pairs(p);
  if (!pairs.empty()) {
    add("bool", {p.batch, 1, p.query_len, p.key_len},
        {.name = "mask",
         .here = reinterpret_cast<std::byte*>(pairs.data()),
         .bytes = pairs.size()});
    is_causal = false;
  } else if (is_window(p.mask)) {
    modified["window"] = {p.window.left, p.window.right};
  }
  (void)process_->call({{"causal", is_causal},
                        {"scale", p.scale},
                        {"modified", std::move(modified)},
                        {"tensors", std::move(described)},
                        {"indices", python_indices(a)}},
                       shared, end);
}

}  // namespace attest
