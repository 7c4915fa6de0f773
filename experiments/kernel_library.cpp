// The kernels of this repository behind a C interface, so that a script can launch them between
// those of PyTorch, in one process and one stream (experiments/attest_kernels.py wraps it).
//
// A function that fails returns a null pointer or -1; attest_error() then says why, in one line.
// Pointers to text stay valid until the next call from the same thread. Tensors are contiguous
// [batch, heads, rows, head_dim] on GPU 0; of a problem with lengths [1, heads, all rows,
// head_dim], see attest_problem.
#include <memory>
#include <string>

#include "core/attention/storage.hpp"
#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/records/hardware_counters.hpp"
#include "core/records/provenance.hpp"
#include "core/records/record.hpp"
#include "core/run/default_plan.hpp"
#include "core/run/index_arrays.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

thread_local std::string last_error, last_text;

Device& gpu() {
  static const std::unique_ptr<Device> device = make_device(Executor::gpu);
  return *device;
}

/// A kernel with its arguments, ready to be launched.
struct PreparedRun {
  const KernelInfo* kernel;
  Arguments arguments;

  IndexArrays indices;

  PreparedRun(const KernelInfo& k, const Arguments& a) : kernel(&k), arguments(a) {
    indices.upload(arguments.problem, gpu(), arguments);
    const std::size_t bytes =
        k.workspace_bytes ? k.workspace_bytes(arguments.problem, arguments.plan) : 0;
    if (bytes > 0) arguments.workspace = gpu().allocate(bytes);
  }
  PreparedRun(const PreparedRun&) = delete;
  PreparedRun& operator=(const PreparedRun&) = delete;
  ~PreparedRun() {
    indices.release(gpu());
    if (arguments.workspace != nullptr) gpu().release(static_cast<std::byte*>(arguments.workspace));
  }
};

const KernelInfo& kernel_named(const std::string& name) {
  const KernelInfo* kernel = find_kernel(name, Executor::gpu);
  if (kernel == nullptr) {
    throw InvalidInput("kernel '" + name + "' is unknown; see attest list kernels");
  }
  return *kernel;
}

DefaultPlan default_plan_here(const KernelInfo& kernel, const Problem& problem) {
  static const std::string description = gpu().description();
  const auto choice = default_plan(kernel, problem, gpu_name_in(description));
  if (!choice) throw InvalidInput(kernel.name + ": no plan for " + to_string(problem));
  return *choice;
}

std::unique_ptr<PreparedRun> prepare(const std::string& name, const std::string& problem_text,
                                     const std::string& plan_text, const void* q, const void* k,
                                     const void* v, void* o, float* lse) {
  const KernelInfo& kernel = kernel_named(name);
  const Problem problem = problem_from_string(problem_text);
  const Plan plan =
      plan_text.empty() ? default_plan_here(kernel, problem).plan : plan_from_string(plan_text);
  if (const auto reason = why_unsupported(kernel, problem, plan)) {
    throw InvalidInput(name + ": " + *reason);
  }
  ForwardArguments arguments;
  arguments.problem = problem;
  arguments.plan = plan;
  arguments.q = q;
  arguments.k = k;
  arguments.v = v;
  arguments.o = o;
  arguments.lse = lse;
  arguments.q_strides = strides_of(stored_shape(problem, forward::q), {});
  arguments.k_strides = strides_of(stored_shape(problem, forward::k), {});
  arguments.v_strides = strides_of(stored_shape(problem, forward::v), {});
  arguments.o_strides = strides_of(stored_shape(problem, forward::o), {});
  return std::make_unique<PreparedRun>(kernel, arguments);
}

Json described(const Problem& problem) {
  Json json = {{"problem", to_string(problem)}, {"forward_flops", forward_flops(problem)}};
  for_each_tensor(*problem.operation, [&](const TensorSpec& tensor, auto index) {
    const Shape shape = stored_shape(problem, index);
    json[tensor.name] = tensor.is_strided ? Json(shape) : Json({shape[0], shape[1], shape[2]});
  });
  json["query_starts"] = query_starts(problem);
  json["key_starts"] = key_starts(problem);
  return json;
}

std::vector<std::string> names_in(const char* json) {
  std::vector<std::string> names;
  for (const auto& name : parse_json(json)) names.push_back(name.get<std::string>());
  return names;
}

Json counted(const std::vector<std::string>& names, int (*work)()) {
  const auto checked = [work] {
    if (work() != 0) throw KernelError("the work that was to be counted failed");
  };
  Json list = Json::array();
  for (const Measurement& m : gpu().count(names, checked)) {
    list.push_back({{"name", m.name}, {"value", m.value}, {"unit", m.unit}});
  }
  return list;
}

Json described(const std::vector<HardwareCounter>& counters) {
  Json list = Json::array();
  for (const HardwareCounter& c : counters) {
    list.push_back({{"name", c.name},
                    {"unit", c.unit},
                    {"metric", c.metric},
                    {"per", c.per},
                    {"rest", c.rest}});
  }
  return list;
}

/// Calls `work`; keeps the message and returns `failed` when it throws.
template <typename Result, typename Work>
Result guarded(Result failed, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    last_error = error.what();
    return failed;
  }
}

}  // namespace
}  // namespace attest

extern "C" {
using attest::guarded;
using attest::PreparedRun;

[[gnu::visibility("default")]] const char* attest_error() {
  return attest::last_error.c_str();
}

/// The cudaStream_t in which everything here happens.
[[gnu::visibility("default")]] void* attest_stream() {
  return guarded<void*>(nullptr, [] { return attest::gpu().native_stream(); });
}

/// JSON: the Plan that an empty plan stands for, as text, and where it is from.
[[gnu::visibility("default")]] const char* attest_default_plan(const char* kernel,
                                                               const char* problem) {
  return guarded<const char*>(nullptr, [&] {
    const attest::DefaultPlan choice = attest::default_plan_here(
        attest::kernel_named(kernel), attest::problem_from_string(problem));
    attest::last_text =
        attest::Json{{"plan", to_string(choice.plan)}, {"origin", to_string(choice)}}.dump();
    return attest::last_text.c_str();
  });
}

/// An empty plan: the kernel's default, see attest_default_plan.
[[gnu::visibility("default")]] void* attest_prepare(const char* kernel, const char* problem,
                                                    const char* plan, const void* q, const void* k,
                                                    const void* v, void* o, float* lse) {
  return guarded<void*>(
      nullptr, [&] { return attest::prepare(kernel, problem, plan, q, k, v, o, lse).release(); });
}

/// Does not wait.
[[gnu::visibility("default")]] int attest_launch(void* run) {
  return guarded(-1, [&] {
    const auto& prepared = *static_cast<PreparedRun*>(run);
    prepared.kernel->launch(prepared.arguments, attest::gpu());
    return 0;
  });
}

[[gnu::visibility("default")]] void attest_release(void* run) {
  delete static_cast<PreparedRun*>(run);
}

/// JSON: the problem as text, forward_flops, shapes of q, k, v, o and lse in memory, query_starts
/// and key_starts.
[[gnu::visibility("default")]] const char* attest_problem(const char* problem) {
  return guarded<const char*>(nullptr, [&] {
    attest::last_text = attest::described(attest::problem_from_string(problem)).dump();
    return attest::last_text.c_str();
  });
}

/// JSON: what a JSON list of counters, groups and metrics stands for
/// (core/records/hardware_counters.hpp).
[[gnu::visibility("default")]] const char* attest_counters(const char* names) {
  return guarded<const char*>(nullptr, [&] {
    attest::last_text =
        attest::described(attest::hardware_counters_of(attest::names_in(names))).dump();
    return attest::last_text.c_str();
  });
}

/// JSON: what they said of `work`, which runs several times and returns 0, or else has failed.
[[gnu::visibility("default")]] const char* attest_count(const char* names, int (*work)()) {
  return guarded<const char*>(nullptr, [&] {
    attest::last_text = attest::counted(attest::names_in(names), work).dump();
    return attest::last_text.c_str();
  });
}

/// The plan of a run, as text.
[[gnu::visibility("default")]] const char* attest_plan(void* run) {
  return guarded<const char*>(nullptr, [&] {
    attest::last_text = to_string(static_cast<PreparedRun*>(run)->arguments.plan);
    return attest::last_text.c_str();
  });
}

/// Appends a record: labels and measurements as JSON in the form of core/records/record.hpp; schema
/// and provenance are filled in here.
[[gnu::visibility("default")]] int attest_append_record(const char* path, const char* kind,
                                                        const char* labels,
                                                        const char* measurements) {
  return guarded(-1, [&] {
    attest::Record record;
    record.kind = kind;
    const attest::Json given_labels = attest::parse_json(labels);  // outlives the loop
    for (const auto& [key, value] : given_labels.items()) {
      record.labels[key] = value.get<std::string>();
    }
    for (const auto& m : attest::parse_json(measurements)) {
      record.measurements.push_back({m.at("name").get<std::string>(), m.at("value").get<double>(),
                                     m.at("unit").get<std::string>()});
    }
    record.provenance = attest::current_provenance(attest::gpu().description());
    attest::RecordWriter writer(path);
    writer.write(record);
    writer.close();
    return 0;
  });
}
}
