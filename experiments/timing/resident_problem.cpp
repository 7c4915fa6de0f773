#include "experiments/timing/resident_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <future>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/quantised.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/device_reference.hpp"
#include "cpu_reference/reference.hpp"
#include "verify/judge/compare.hpp"

namespace attest {
namespace {

constexpr std::uint64_t seed_rows = 4;
constexpr std::size_t most_rows_at_a_time = 8;
/// Up to here every row is compared: about a tenth of a second of an H200 for O, some three for
/// gradients (gpu/reference/README.md).
constexpr double most_reference_work_gpu = 0x1p36, most_reference_work_executor = 0x1p18;
/// And up to so many elements of K: few queries are little work, but K and V come from the host.
constexpr std::size_t most_reference_keys = std::size_t{1} << 26;

std::size_t elements_of(const Shape& shape) {
  return static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]);
}

std::array<std::byte, 4> poison(ElementType type) {
  return std::bit_cast<std::array<std::byte, 4>>(poison_bits(type));
}

std::vector<float> decoded(ElementType type, std::span<const std::byte> bytes) {
  const std::size_t size = format_of(type).size_bytes;
  std::vector<float> values(bytes.size() / size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &bytes[i * size], size);
    values[i] = decode(type, bits);
  }
  return values;
}

std::string sentence(std::string_view tensor, const Shape& at, double got, double want,
                     double bound) {
  return fmt::format("{} at {} is {:.9g}, want {:.9g} within {:.3g}", tensor, to_string(at), got,
                     want, bound);
}

TiledInputs drawn_inputs(const Problem& problem, InputSpec spec, std::size_t draw) {
  constexpr std::array<float, ResidentProblem::draws> factors{1, -1, 1, -0.5F};
  spec.seed += draw;
  TiledInputs inputs = tiled_inputs(problem, spec);
  if (factors[draw] != 1) {
    auto& v = inputs[forward::v.number];
    v = std::make_shared<const TiledValues>(v->times(factors[draw]));
  }
  return inputs;
}

/// A row as a problem of its own has the scales of its first keys: those that it sees must be
/// these.
void require_scales_by_row(const Problem& problem) {
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

/// A tensor without gaps, as its elements lie one after another.
Tensor<float> tensor_of(const Shape& shape, const TiledValues& values) {
  Tensor<float> tensor(shape);
  values.copy(0, tensor.values());
  return tensor;
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
      const auto needs = [&](const auto& bytes) { return bytes && bytes(a.problem, plan) > 0; };
      if (why_unsupported(kernel, a.problem, plan) || needs(kernel.workspace_bytes) ||
          needs(kernel.counter_bytes)) {
        continue;
      }
      a.plan = plan;
      kernel.launch(a, device);
      device.synchronize();
      return;
    }
  }
  throw MachineError(fmt::format("no kernel here computes {} of {}, which inputs follow from",
                                 a.problem.operation->name, to_string(a.problem)));
}

}  // namespace

std::optional<std::string> SampledRows::why_wrong() const {
  if (!failure.empty()) return failure;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.got.size(); ++i) {
      const OutputIndex output{i};
      if (row.got[output].values().empty()) continue;
      const Comparison comparison =
          compare(row.got[output], row.answer[output].value, row.answer[output].bound);
      if (comparison.is_within()) continue;
      const WorstElement& worst = comparison.worst;
      return sentence((*operation)[output].label,
                      Shape{row.at[0], row.at[1], row.at[2], worst.index[3]}, worst.got, worst.want,
                      worst.bound);
    }
  }
  return std::nullopt;
}

ResidentProblem::ResidentProblem(const Problem& problem, const InputSpec& inputs, Device& device,
                                 const Paging& paging)
    : problem_(problem), spec_(inputs), paging_(paging), device_(device) {
  require_scales_by_row(problem);
  drawn_[0] = drawn_inputs(problem, inputs, 0);  // first: the family may not fit
  arguments_.problem = problem;
  try {
    const Operation& operation = *problem.operation;
    for (std::size_t i = 0; i < operation.inputs().size(); ++i) {
      const TensorSpec& tensor = operation[InputIndex{i}];
      storages_.push_back(storage_of(tensor, problem, paging));
      if (!has_tensor(problem, {i})) {
        inputs_.push_back({});
        continue;
      }
      if (const InputIndex holder = holder_of(problem, {i}); holder != InputIndex{i}) {
        inputs_.push_back({});  // filled and given back with the other one
        arguments_.inputs[i] = arguments_.inputs[holder.number];
        continue;
      }
      inputs_.push_back(allocate(tensor));
      arguments_.inputs[i] = {inputs_[i].data,
                              strides_of(stored_shape(storages_[i], tensor.shape(problem)), {})};
    }
    for (std::size_t i = 0; i < operation.outputs().size(); ++i) {
      const TensorSpec& tensor = operation[OutputIndex{i}];
      outputs_.push_back(allocate(tensor));
      arguments_.outputs[i] = {outputs_[i].data,
                               strides_of(stored_shape(tensor, problem, paging), {})};
    }
    indices_.upload(problem, paging, device_, arguments_);
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
  indices_.release(device_);
  for (const auto* buffers : {&inputs_, &outputs_}) {
    for (const Buffer& buffer : *buffers) {
      if (buffer.data != nullptr) device_.release(buffer.data);
    }
  }
  if (workspace_ != nullptr) device_.release(workspace_);
  if (counters_ != nullptr) device_.release(counters_);
}

ResidentProblem::Buffer ResidentProblem::allocate(const TensorSpec& tensor) {
  const ElementType type = tensor.format(problem_);
  const std::size_t bytes =
      elements_of(stored_shape(tensor, problem_, paging_)) * format_of(type).size_bytes;
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
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].data == nullptr || (*drawn_[draw])[i] == nullptr) continue;
    device_.fill(inputs_[i].data, inputs_[i].bytes, values({i}).bytes());
  }
  make_what_follows();
}

void ResidentProblem::make_what_follows() {
  TiledInputs& drawn = *drawn_[draw_];
  const Operation& operation = *problem_.operation;
  if (std::ranges::none_of(drawn, [](const auto& one) { return one == nullptr; })) return;
  const Operation& maker = *operation.extends;
  Arguments arguments = arguments_;
  arguments.problem.operation = &maker;
  arguments.outputs = {};
  // What it reads are our first inputs; what it writes has the name of another one.
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const auto outputs = maker.outputs();
    const auto made = std::ranges::find(outputs, operation[InputIndex{i}].name, &TensorSpec::name);
    if (made == outputs.end()) continue;
    arguments.outputs[static_cast<std::size_t>(made - outputs.begin())] = {
        inputs_[i].data, arguments_.inputs[i].strides};
  }
  launch_any(arguments, device_);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (drawn[i] != nullptr) continue;
    std::vector<float> made = downloaded(inputs_[i]);
    if (made.empty()) made.push_back(0);
    drawn[i] = std::make_shared<const TiledValues>(inputs_[i].type, std::move(made));
    device_.fill(inputs_[i].data, inputs_[i].bytes, drawn[i]->bytes());
  }
}

void ResidentProblem::poison_outputs() {
  for (const Buffer& output : outputs_) {
    const auto bits = poison(output.type);
    device_.fill(output.data, output.bytes,
                 std::span(bits).first(format_of(output.type).size_bytes));
  }
}

/// The first and the last query or key among them: masks and tails go wrong at the ends.
std::vector<ResidentProblem::Place> ResidentProblem::sampled_places(Rows kind,
                                                                    std::int64_t rows) const {
  const bool is_query = kind == Rows::queries;
  const auto length_of = [&](std::int64_t entry) {
    return is_query ? problem_.query_len_of(entry) : problem_.key_len_of(entry);
  };
  std::vector<Place> places;
  for (std::int64_t number = 0; number < rows; ++number) {
    const auto draw = [&](std::uint64_t axis, std::int64_t below) {
      return random_below(seed_rows, axis, static_cast<std::uint64_t>(number), below);
    };
    std::int64_t entry = draw(0, problem_.batch), without = 0;
    for (; length_of(entry) == 0 && without < problem_.batch; ++without) {
      entry = (entry + 1) % problem_.batch;
    }
    const std::int64_t length = length_of(entry);
    if (length == 0) break;  // there is no row at all
    const std::int64_t row = number == 0 ? 0 : number == 1 ? length - 1 : draw(2, length);
    const std::int64_t heads = is_query ? problem_.query_heads : problem_.kv_heads;
    places.push_back({kind, entry, draw(1, heads), row});
  }
  return places;
}

ResidentProblem::OneRow ResidentProblem::row_at(const Place& place) const {
  const std::int64_t group = problem_.query_heads / problem_.kv_heads;
  std::vector<std::pair<std::int64_t, std::int64_t>> queries;  // head and row
  std::vector<std::int64_t> keys;
  std::int64_t kv_head = place.head;
  if (place.kind == Rows::queries) {
    kv_head = problem_.kv_head_of(place.head);
    queries.emplace_back(place.head, place.row);
    keys = visible_keys_of(problem_, place.entry, place.row);
  } else {
    keys.push_back(place.row);
    for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      for (std::int64_t i = 0; i < problem_.query_len_of(place.entry); ++i) {
        if (problem_.sees(place.entry, i, place.row)) queries.emplace_back(h, i);
      }
    }
  }
  OneRow row{.problem = problem_};
  Problem& one = row.problem;
  one.batch = one.query_heads = one.kv_heads = 1;
  one.query_len = static_cast<std::int64_t>(queries.size());
  one.key_len = static_cast<std::int64_t>(keys.size());
  one.mask = Mask::none;
  one.window = {};
  one.length_seed = one.padding_seed = 0;
  one.shared_keys = 0;
  const Operation& operation = *problem_.operation;
  for (std::size_t number = 0; number < operation.inputs().size(); ++number) {
    const InputIndex input{number};
    const TensorSpec& tensor = operation[input];
    Tensor<float>& to = row.inputs[input] = Tensor<float>(tensor.shape(one));
    for (std::int64_t n = 0; n < to.shape()[2]; ++n) {
      const auto at = static_cast<std::size_t>(n);
      // Scales: of a head, or of the first rows, where these are the ones that are seen.
      const auto [head, from] = tensor.rows == Rows::queries ? queries[at]
                                : tensor.rows == Rows::keys  ? std::pair(kv_head, keys[at])
                                                             : std::pair(kv_head, n);
      values(input).copy(offset_of(input, place.entry, head, from), to.row(0, 0, n));
    }
  }
  return row;
}

std::int64_t ResidentProblem::offset_of(InputIndex input, std::int64_t entry, std::int64_t head,
                                        std::int64_t row) const {
  const Strides& strides = arguments_[input].strides;
  const auto at = static_cast<std::size_t>(entry);
  const Storage& storage = storages_[input.number];
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

Tensor<float> ResidentProblem::on_host(InputIndex input) const {
  if (const InputIndex holder = holder_of(problem_, input); holder != input) {
    const Tensor<float> whole = on_host(holder);
    Tensor<float> part((*problem_.operation)[input].shape(problem_));
    const Shape& shape = part.shape();
    for (std::int64_t b = 0; b < shape[0]; ++b) {
      for (std::int64_t h = 0; h < shape[1]; ++h) {
        for (std::int64_t n = 0; n < shape[2]; ++n) {
          const auto to = part.row(b, h, n);
          std::ranges::copy(whole.row(b, h, n).first(to.size()), to.begin());
        }
      }
    }
    return part;
  }
  const TensorSpec& tensor = (*problem_.operation)[input];
  const Storage& storage = storages_[input.number];
  const Shape shape = tensor.shape(problem_);
  Tensor<float> stored = tensor_of(stored_shape(storage, shape), values(input));
  if (std::holds_alternative<Strided>(storage)) return stored;
  return restored(storage, stored, shape, tensor.absent);
}

Tensor<float> ResidentProblem::given(OutputIndex output) const {
  const TensorSpec& tensor = (*problem_.operation)[output];
  const Shape shape = tensor.shape(problem_);
  const Storage storage = storage_of(tensor, problem_, paging_);
  Tensor<float> stored(stored_shape(storage, shape));
  std::ranges::copy(downloaded(outputs_[output.number]), stored.values().begin());
  return restored(storage, stored, shape, tensor.absent);
}

void ResidentProblem::prepare(const KernelInfo& kernel, const Plan& plan) {
  arguments_.plan = plan;
  const std::size_t needed = kernel.workspace_bytes ? kernel.workspace_bytes(problem_, plan) : 0;
  if (needed > workspace_bytes_) {
    if (workspace_ != nullptr) device_.release(workspace_);
    workspace_ = nullptr;
    workspace_bytes_ = 0;
    workspace_ = device_.allocate(needed);
    workspace_bytes_ = needed;
  }
  arguments_.workspace = workspace_;
  const std::size_t counters = kernel.counter_bytes ? kernel.counter_bytes(problem_, plan) : 0;
  if (counters > counter_bytes_) {
    if (counters_ != nullptr) device_.release(counters_);
    counters_ = device_.upload_values(std::vector<std::byte>(counters));
    counter_bytes_ = counters;
  }
  arguments_.counters = reinterpret_cast<unsigned*>(counters_);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    arguments_.outputs[i].data = kernel.gives(OutputIndex{i}) ? outputs_[i].data : nullptr;
  }
}

std::vector<float> ResidentProblem::downloaded(const Buffer& buffer) const {
  std::vector<std::byte> bytes(buffer.bytes);
  device_.download(buffer.data, bytes);
  return decoded(buffer.type, bytes);
}

std::vector<float> ResidentProblem::row_of(OutputIndex output, const Place& place) const {
  const Buffer& buffer = outputs_[output.number];
  const std::size_t size = format_of(buffer.type).size_bytes;
  // Packed entries follow each other along the sequence of one.
  const bool is_packed = problem_.length_seed != 0;
  const auto starts = !is_packed                    ? std::vector<std::int32_t>{}
                      : place.kind == Rows::queries ? query_starts(problem_)
                                                    : key_starts(problem_);
  const std::int64_t first = is_packed ? starts[static_cast<std::size_t>(place.entry)] : 0;
  const std::int64_t offset = arguments_.outputs[output.number].strides.offset(
      is_packed ? 0 : place.entry, place.head, first + place.row);
  const std::int64_t columns = (*problem_.operation)[output].shape(problem_)[3];
  std::vector<std::byte> bytes(static_cast<std::size_t>(columns) * size);
  device_.download(buffer.data + static_cast<std::size_t>(offset) * size, bytes);
  return decoded(buffer.type, bytes);
}

SampledRows ResidentProblem::sample(const KernelInfo& kernel, const Plan& plan,
                                    std::int64_t count) {
  poison_outputs();
  try {
    launch(kernel, plan);
    device_.synchronize();
  } catch (const KernelError& error) {
    return {.rows = {}, .failure = error.what()};
  } catch (const MachineError& error) {  // what the device is worth now nobody knows
    throw MachineError(fmt::format("{} {} of {}: {}", kernel.name, to_string(plan),
                                   to_string(problem_), error.what()));
  }
  return answers(kernel, plan, count);
}

SampledRows ResidentProblem::answers(const KernelInfo& kernel, const Plan& plan,
                                     std::int64_t count) {
  const Operation& operation = *problem_.operation;
  SampledRows sampled;
  sampled.operation = &operation;
  std::vector<Rows> kinds;
  for (std::size_t i = 0; i < operation.outputs().size(); ++i) {
    const TensorSpec& tensor = operation[OutputIndex{i}];
    if (!kernel.gives(OutputIndex{i})) continue;
    if (std::ranges::find(kinds, tensor.rows) == kinds.end()) kinds.push_back(tensor.rows);
    if (tensor.is_strided) continue;
    const std::vector<float> all = downloaded(outputs_[i]);  // one number a row
    const auto unwritten = std::ranges::find_if(all, [](float x) { return std::isnan(x); });
    if (unwritten == all.end()) continue;
    sampled.failure = fmt::format("{} of row {} was not written or is NaN", tensor.label,
                                  unwritten - all.begin());
    return sampled;
  }
  const Roundings roundings = kernel.precision(problem_, plan);
  std::vector<std::future<SampledRows::Row>> rows;
  for (const Rows kind : kinds) {
    for (const Place& place : sampled_places(kind, count)) {
      SampledRows::Row row{.kind = kind, .at = {place.entry, place.head, place.row, 0}};
      for (std::size_t i = 0; i < operation.outputs().size(); ++i) {
        const OutputIndex output{i};
        row.got[output] = {};
        if (operation[output].rows != kind || !kernel.gives(output)) continue;
        const std::vector<float> got = row_of(output, place);
        row.got[output] = Tensor<float>(Shape{1, 1, 1, static_cast<std::int64_t>(got.size())});
        std::ranges::copy(got, row.got[output].values().begin());
      }
      // A row of a long problem holds all of its keys: few at a time.
      if (rows.size() >= most_rows_at_a_time + sampled.rows.size()) {
        sampled.rows.push_back(rows[sampled.rows.size()].get());
      }
      // Where no thread can be had, get() does the work.
      rows.push_back(std::async(
          std::launch::async | std::launch::deferred,
          [this, place, &operation, &roundings, row = std::move(row)]() mutable {
            const OneRow one = row_at(place);
            row.answer = reference_of(operation).exact(one.problem, one.inputs, roundings);
            return std::move(row);
          }));
    }
  }
  while (sampled.rows.size() < rows.size()) {
    sampled.rows.push_back(rows[sampled.rows.size()].get());
  }
  return sampled;
}

std::optional<std::string> ResidentProblem::why_any_row_wrong(const KernelInfo& kernel,
                                                              const Plan& plan) {
  const Operation& operation = *problem_.operation;
  const DeviceReference* const reference = find_device_reference(operation, kernel.executor);
  const double most_work =
      kernel.executor == Executor::gpu ? most_reference_work_gpu : most_reference_work_executor;
  const Roundings roundings = kernel.precision(problem_, plan);
  if (reference == nullptr || !reference->covers(problem_, roundings) ||
      !(reference_work(problem_) <= most_work) ||
      elements_of(key_shape(problem_)) > most_reference_keys) {
    return std::nullopt;
  }
  Inputs host;
  for (std::size_t i = 0; i < operation.inputs().size(); ++i) host[{i}] = on_host({i});
  Outputs got;
  for (std::size_t i = 0; i < operation.outputs().size(); ++i) got[{i}] = given({i});
  const WorstOutputs worst = reference->check(device_, problem_, host, roundings, got);
  for (std::size_t i = 0; i < worst.size(); ++i) {
    const OutputIndex output{i};
    const WorstOutput& of = worst[output];
    if (!kernel.gives(output) || within(1.0, of.ratio)) continue;
    return sentence(operation[output].label, of.index, of.got, of.want, of.bound);
  }
  return std::nullopt;
}

void ResidentProblem::launch(const KernelInfo& kernel, const Plan& plan) {
  prepare(kernel, plan);
  kernel.launch(arguments_, device_);
}

double ResidentProblem::time_ms(const KernelInfo& kernel, const Plan& plan,
                                LaunchesInRow launches) {
  prepare(kernel, plan);
  return time_launches(kernel, arguments_, device_, launches);
}

double ResidentProblem::cold_time_ms(const KernelInfo& kernel, const Plan& plan, int launches) {
  prepare(kernel, plan);
  double sum = 0;
  for (int i = 0; i < launches; ++i) {
    device_.flush_cache();
    sum += time_launches(kernel, arguments_, device_, {});
  }
  return sum / launches;
}

}  // namespace attest
