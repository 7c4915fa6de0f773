#include "experiments/timing/resident_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "core/attention/stored_row.hpp"
#include "core/base/error.hpp"
#include "core/operations/quantised.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

std::size_t elements_of(const Shape& shape) {
  return static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]);
}

/// Codes have no poison: they begin as NaN, as int8's -128 or int4's -8, which no quantiser gives,
/// or as ue8m0's NaN. Of e2m1 every code may be an answer: they begin as 6 and -6.
std::array<std::byte, 4> poison(ElementType type) {
  const std::uint32_t no_code = type == ElementType::int8    ? 0x80U
                                : type == ElementType::int4  ? 0x88U
                                : type == ElementType::ue8m0 ? 0xffU
                                                             : 0x7fU;
  return std::bit_cast<std::array<std::byte, 4>>(format_of(type).poison.value_or(no_code));
}

TiledInputs drawn_inputs(const Problem& problem, InputSpec spec, std::size_t draw) {
  constexpr std::array<float, ResidentProblem::draws> factors{1, -1, 1, -0.5F};
  spec.seed += draw;
  TiledInputs inputs = tiled_inputs(problem, spec);
  if (factors[draw] != 1) {
    // V, or what is all that there is.
    auto& v = inputs[std::min(forward::v.number, inputs.size() - 1)];
    v = std::make_shared<const TiledValues>(v->times(factors[draw]));
  }
  return inputs;
}

/// True if ALiBi counts the distances of every query from the last key that it sees: they are the
/// same where it sees no key that is not there.
bool counts_from_last_key(const Problem& problem) {
  const bool is_causal =
      is_window(problem.mask) ? problem.window.right == 0 : problem.mask != Mask::none;
  Problem plain = problem;
  take_away_seeds(plain);
  return is_causal && problem.query_len == problem.key_len && problem == plain;
}

/// A row as a problem of its own has the scales of its first keys: those that it sees must be
/// these. It has a sink, its weights others that fall, and distances that end at 0; the row of a
/// key has no bias and no distances.
void require_rows_alone(const Problem& problem) {
  const bool is_forward = problem.operation == &forward_operation;
  const bool has_bias = problem.bias != Bias::none, has_slopes = problem.slopes != Slopes::none;
  const bool are_others = has_slopes && !counts_from_last_key(problem);
  if (problem.dropout > 0 || are_others || (!is_forward && (has_bias || has_slopes))) {
    throw InvalidInput(fmt::format(
        "'{}' is timed with scores that a row alone has not; allowed: sinks, in attention biases "
        "and slopes where each query's last key is on its diagonal, no dropout",
        to_string(problem)));
  }
  if (problem.operation != &quantised_operation) return;
  if (problem.codes.q_scales == Scales::none && !is_window(problem.mask) &&
      problem.padding_seed == 0) {
    return;
  }
  throw InvalidInput(fmt::format(
      "rows of {} cannot be compared one by one; allowed: no scales of Q, no window and "
      "no padding",
      to_string(problem)));
}

/// Launches what computes the problem on the device's memory: the first of our own kernels that
/// needs no workspace. Throws MachineError where there is none.
void launch_any(Arguments& a, Device& device) {
  const Executor executor = device.native_stream() != nullptr ? Executor::gpu : Executor::cpu;
  for (const KernelInfo& kernel : all_kernels()) {
    const bool is_ours = kernel.plugin.empty() && !kernel.unavailable;
    if (kernel.executor != executor || kernel.role != KernelRole::kernel || !is_ours ||
        kernel.operation != a.problem.operation || !kernel.missing_outputs.empty()) {
      continue;
    }
    for (const Plan& plan : kernel.plans(a.problem)) {
      if (why_unsupported(kernel, a.problem, plan)) continue;
      const ExtraMemory needed = extra_memory(kernel, a.problem, plan);
      if (needed.workspace > 0 || needed.counters > 0) continue;
      a.plan = plan;
      kernel.launch(a, device);
      device.synchronize();
      return;
    }
  }
  throw MachineError(fmt::format("no kernel here computes {} of {}, which inputs follow from",
                                 a.problem.operation->name, to_string(a.problem)));
}

/// Is the row one of the entry's own?
bool exists(const Storage& storage, std::int64_t entry, std::int64_t row) {
  if (const auto* packed = std::get_if<Packed>(&storage)) return row < packed->rows_of(entry);
  if (const auto* paged = std::get_if<Paged>(&storage)) {
    return row < paged->map.lengths[static_cast<std::size_t>(entry)];
  }
  return true;
}

/// In units from where the tensor begins.
std::int64_t offset_of(const Storage& storage, const Strides& strides, std::int64_t entry,
                       std::int64_t head, std::int64_t row) {
  const auto at = static_cast<std::size_t>(entry);
  if (const auto* packed = std::get_if<Packed>(&storage)) {
    return strides.offset(0, head, packed->starts[at] + row);
  }
  if (const auto* paged = std::get_if<Paged>(&storage)) {
    const std::int64_t size = paged->map.page_size;
    const std::int64_t page = paged->map.pages[at][static_cast<std::size_t>(row / size)];
    return strides.offset(page, head, row % size);
  }
  return strides.offset(entry, head, row);
}

}  // namespace

ResidentProblem::ResidentProblem(const Problem& problem, const InputSpec& inputs, Device& device,
                                 const Paging& paging)
    : problem_(problem),
      spec_(inputs),
      device_(device),
      image_(problem, paging),
      inputs_(image_.inputs.size()),
      outputs_(image_.outputs.size()) {
  require_rows_alone(problem);
  drawn_[0] = drawn_inputs(problem, inputs, 0);  // first: the family may not fit
  try {
    const Operation& operation = *problem.operation;
    image_.place_inputs([&](InputIndex index) -> InputArgument {
      const ElementType type = operation[index].format(problem);
      const Shape shape = in_units(image_.stored_shape(index), type);
      Buffer& buffer = inputs_[index.number];
      buffer = allocate(shape, type);
      return {buffer.data, strides_of(shape, {})};
    });
    image_.place_outputs([&](OutputIndex index) -> OutputArgument {
      const ElementType type = operation[index].format(problem);
      const Shape shape = in_units(image_.stored_shape(index), type);
      Buffer& buffer = outputs_[index.number];
      buffer = allocate(shape, type);
      return {buffer.data, strides_of(shape, {})};
    });
    image_.indices.upload(problem, paging, device_, image_.arguments);
    put_values(0);
    poison_outputs();
  } catch (...) {
    release();  // a constructor that throws has no destructor
    throw;
  }
}

ResidentProblem::~ResidentProblem() {
  release();
}

void ResidentProblem::release() noexcept {
  image_.indices.release(device_);
  for (const auto* buffers : {&inputs_, &outputs_}) {
    for (const Buffer& buffer : *buffers) {
      if (buffer.data != nullptr) device_.release(buffer.data);
    }
  }
  if (workspace_ != nullptr) device_.release(workspace_);
  if (counters_ != nullptr) device_.release(counters_);
}

ResidentProblem::Buffer ResidentProblem::allocate(const Shape& shape, ElementType type) {
  const std::size_t bytes = elements_of(shape) * format_of(type).size_bytes;
  // A GPU's memory is filled where it is, before anything reads it: gigabytes of zeros need not
  // travel.
  const bool is_gpu = device_.native_stream() != nullptr;
  return {is_gpu ? device_.allocate(bytes) : device_.upload_values(std::vector<std::byte>(bytes)),
          bytes, type};
}

void ResidentProblem::draw_values() {
  for (std::size_t draw = 0; draw < draws; ++draw) {
    if (!drawn_[draw]) drawn_[draw] = drawn_inputs(problem_, spec_, draw);
  }
}

void ResidentProblem::put_values(std::size_t draw) {
  if (draw == draw_) return;
  if (!drawn_[draw]) drawn_[draw] = drawn_inputs(problem_, spec_, draw);
  draw_ = draw;
  put_values_again();
}

void ResidentProblem::put_values_again() {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].data == nullptr || (*drawn_[draw_])[i] == nullptr) continue;
    device_.fill(inputs_[i].data, inputs_[i].bytes, (*drawn_[draw_])[i]->bytes());
  }
  make_what_follows();
}

void ResidentProblem::make_what_follows() {
  const Operation& operation = *problem_.operation;
  if (std::ranges::none_of(*drawn_[draw_], [](const auto& one) { return one == nullptr; })) return;
  const Operation& maker = *operation.extends;
  Arguments arguments = image_.arguments;
  arguments.problem.operation = &maker;
  arguments.inputs = {};
  arguments.outputs = {};
  // What it reads and what it writes have the names of our inputs.
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const auto place_among = [&](std::span<const TensorSpec> tensors) {
      return static_cast<std::size_t>(
          std::ranges::find(tensors, operation[InputIndex{i}].name, &TensorSpec::name) -
          tensors.begin());
    };
    const std::size_t read = place_among(maker.inputs()), made = place_among(maker.outputs());
    if (read < maker.inputs().size()) arguments.inputs[read] = image_.arguments.inputs[i];
    if (made == maker.outputs().size()) continue;
    arguments.outputs[made] = {inputs_[i].data, image_.arguments.inputs[i].strides};
  }
  launch_any(arguments, device_);
}

void ResidentProblem::poison_outputs() {
  for (const Buffer& output : outputs_) {
    if (output.data == nullptr) continue;  // the problem does not have it
    const auto bits = poison(output.type);
    device_.fill(output.data, output.bytes,
                 std::span(bits).first(format_of(output.type).size_bytes));
  }
}

void ResidentProblem::copy_row(InputIndex input, std::int64_t entry, std::int64_t head,
                               std::int64_t row, std::span<float> to) const {
  const TiledValues& values = *(*drawn_[draw_])[holder_of(problem_, input).number];
  values.copy(
      offset_of(image_.inputs[input.number], image_.arguments[input].strides, entry, head, row),
      to);
}

std::vector<float> ResidentProblem::downloaded(const std::byte* data, ElementType type,
                                               std::int64_t first, std::int64_t rows,
                                               std::int64_t columns) const {
  const std::size_t size = format_of(type).size_bytes;
  const std::size_t row_bytes = static_cast<std::size_t>(units_of(type, columns)) * size;
  std::vector<std::byte> bytes(static_cast<std::size_t>(rows) * row_bytes);
  device_.download(data + static_cast<std::size_t>(first) * size, bytes);
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(rows * columns));
  for (std::size_t at = 0; at < bytes.size(); at += row_bytes) {
    for_each_stored(&bytes[at], type, static_cast<std::size_t>(columns),
                    [&](std::size_t, std::uint32_t bits) { values.push_back(decode(type, bits)); });
  }
  return values;
}

std::vector<float> ResidentProblem::head_of(InputIndex input, std::int64_t entry,
                                            std::int64_t head) const {
  const TensorSpec& tensor = (*problem_.operation)[input];
  const std::int64_t rows = problem_.query_len_of(entry), columns = tensor.shape(problem_)[3];
  if (rows == 0) return {};
  const Strides& strides = image_.arguments[input].strides;
  const Buffer& buffer = inputs_[input.number];
  return downloaded(buffer.data, buffer.type,
                    offset_of(image_.inputs[input.number], strides, entry, head, 0), rows, columns);
}

std::vector<float> ResidentProblem::row_of(OutputIndex output, std::int64_t entry,
                                           std::int64_t head, std::int64_t row) const {
  const Buffer& buffer = outputs_[output.number];
  const Strides& strides = image_.arguments.outputs[output.number].strides;
  return downloaded(buffer.data, buffer.type,
                    offset_of(image_.outputs[output.number], strides, entry, head, row), 1,
                    (*problem_.operation)[output].shape(problem_)[3]);
}

std::vector<float> ResidentProblem::head_of(OutputIndex output, std::int64_t entry,
                                            std::int64_t head, std::int64_t rows) const {
  const Buffer& buffer = outputs_[output.number];
  const Strides& strides = image_.arguments.outputs[output.number].strides;
  const std::int64_t columns = (*problem_.operation)[output].shape(problem_)[3];
  return downloaded(buffer.data, buffer.type,
                    offset_of(image_.outputs[output.number], strides, entry, head, 0), rows,
                    columns);
}

std::vector<float> ResidentProblem::all_of(OutputIndex output) const {
  const Buffer& buffer = outputs_[output.number];
  const ElementFormat& format = format_of(buffer.type);
  const auto units = static_cast<std::int64_t>(buffer.bytes / format.size_bytes);
  return downloaded(buffer.data, buffer.type, 0, 1, units * format.elements_in_unit);
}

DeviceTensor ResidentProblem::on_device(const TensorSpec& tensor, const Storage& storage,
                                        const Strides& strides, const Buffer& buffer) const {
  DeviceTensor there{.shape = tensor.shape(problem_),
                     .type = buffer.type,
                     .data = buffer.data,
                     .absent = tensor.absent};
  const Shape& shape = there.shape;
  const bool has_gaps = strides.batch != shape[1] * strides.head ||
                        strides.head != shape[2] * shape[3] || strides.row != shape[3];
  if (std::holds_alternative<Strided>(storage) && !has_gaps) return there;
  for (std::int64_t entry = 0; entry < shape[0]; ++entry) {
    for (std::int64_t head = 0; head < shape[1]; ++head) {
      for (std::int64_t row = 0; row < shape[2]; ++row) {
        there.rows.push_back(exists(storage, entry, row)
                                 ? offset_of(storage, strides, entry, head, row)
                                 : DeviceTensor::absent_row);
      }
    }
  }
  return there;
}

DeviceInputs ResidentProblem::inputs_on_device() const {
  DeviceInputs there;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    there[{i}] = on_device((*problem_.operation)[InputIndex{i}], image_.inputs[i],
                           image_.arguments.inputs[i].strides,
                           inputs_[holder_of(problem_, InputIndex{i}).number]);
  }
  return there;
}

DeviceOutputs ResidentProblem::outputs_on_device() const {
  DeviceOutputs there;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    there[{i}] = on_device((*problem_.operation)[OutputIndex{i}], image_.outputs[i],
                           image_.arguments.outputs[i].strides, outputs_[i]);
  }
  return there;
}

void ResidentProblem::prepare(const KernelInfo& kernel, const Plan& plan) {
  image_.arguments.plan = plan;
  const auto [needed, counters] = extra_memory(kernel, problem_, plan);
  if (needed > workspace_bytes_) {
    if (workspace_ != nullptr) device_.release(workspace_);
    workspace_ = nullptr;
    workspace_bytes_ = 0;
    workspace_ = device_.allocate(needed);
    workspace_bytes_ = needed;
  }
  image_.arguments.workspace = workspace_;
  if (counters > counter_bytes_) {
    if (counters_ != nullptr) device_.release(counters_);
    counters_ = device_.upload_values(std::vector<std::byte>(counters));
    counter_bytes_ = counters;
  }
  image_.arguments.counters = reinterpret_cast<unsigned*>(counters_);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    image_.arguments.outputs[i].data = kernel.gives(OutputIndex{i}) ? outputs_[i].data : nullptr;
  }
}

void ResidentProblem::launch(const KernelInfo& kernel, const Plan& plan) {
  prepare(kernel, plan);
  kernel.launch(image_.arguments, device_);
}

double ResidentProblem::time_ms(const KernelInfo& kernel, const Plan& plan,
                                LaunchesInRow launches) {
  prepare(kernel, plan);
  return time_launches(kernel, image_.arguments, device_, launches);
}

double ResidentProblem::cold_time_ms(const KernelInfo& kernel, const Plan& plan, int launches) {
  prepare(kernel, plan);
  double sum = 0;
  for (int i = 0; i < launches; ++i) {
    device_.flush_cache();
    sum += time_launches(kernel, image_.arguments, device_, {});
  }
  return sum / launches;
}

}  // namespace attest
