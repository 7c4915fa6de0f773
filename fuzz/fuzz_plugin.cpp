#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "core/attention/backward_roundings.hpp"
#include "core/attention/merge_roundings.hpp"
#include "core/attention/select_roundings.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/combine.hpp"
#include "core/operations/select.hpp"
#include "core/run/kernel.hpp"
#include "fuzz/contract.hpp"
#include "fuzz/targets.hpp"
#include "plugin/descriptor.hpp"

namespace attest {
namespace {

/// Takes values from the bytes; past their end everything is 0.
class Source {
 public:
  explicit Source(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  /// Any bit pattern of T.
  template <typename T>
  T raw() {
    T value{};
    const std::size_t count = std::min(sizeof value, bytes_.size());
    if (count > 0) std::memcpy(&value, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return value;
  }
  /// `usual`, unless the next byte says: anything.
  template <typename T>
  T mostly(T usual) {
    return raw<std::uint8_t>() < 240 ? usual : raw<T>();
  }
  std::size_t below(std::size_t bound) { return raw<std::uint8_t>() % bound; }

 private:
  std::span<const std::uint8_t> bytes_;
};

/// A descriptor whose pointers are good and whose other fields are not: what the child process of
/// the loader cannot find out by crashing.
class Descriptor {
 public:
  explicit Descriptor(Source source) : source_(source) {
    for (std::size_t i = source_.below(4); i > 0; --i) add_kernel();
    plugin_.value = {source_.mostly<std::uint32_t>(sizeof(AttestPlugin)),
                     source_.mostly<std::uint32_t>(ATTEST_PLUGIN_VERSION),
                     kernels_.empty() ? nullptr : kernels_.data(), kernels_.size()};
  }
  [[nodiscard]] const AttestPlugin* get() const { return &plugin_.value; }

 private:
  /// A struct with room behind it: its size may claim more than it has.
  template <typename T>
  struct Padded {
    T value{};
    std::array<unsigned char, 4096> behind{};
  };

  const char* text() {
    std::string text;
    for (std::size_t i = source_.below(80); i > 0; --i)
      text += static_cast<char>(source_.below(256));
    texts_.push_back(std::move(text));
    return source_.below(16) == 0 ? nullptr : texts_.back().c_str();
  }

  std::uint32_t small_u32(std::size_t bound) {
    return static_cast<std::uint32_t>(source_.below(bound));
  }

  AttestFormat format() {
    constexpr std::array<AttestFormat, 4> formats{
        {ATTEST_FP32, ATTEST_FP16, ATTEST_BF16, ATTEST_TF32}};
    return formats.at(source_.below(formats.size()));
  }

  const char* operation() {
    constexpr std::array<const char*, 4> names{nullptr, "forward", "combine", "select"};
    const std::size_t name = source_.below(names.size() + 1);
    return name < names.size() ? names.at(name) : text();
  }

  AttestPlan plan() {
    constexpr std::array<const char*, 4> names{"query_tile", "key_splits", "grid_order", ""};
    std::vector<AttestPlanField>& fields = fields_.emplace_back();
    for (std::size_t i = source_.below(5); i > 0; --i) {
      const std::size_t name = source_.below(5);
      const auto value = static_cast<std::int64_t>(source_.raw<std::uint8_t>());
      fields.push_back({name < 4 ? names.at(name) : text(), source_.mostly(value)});
    }
    return {fields.data(), fields.size()};
  }

  const AttestPrecision* precision() {
    if (source_.below(3) == 0) return nullptr;
    Padded<AttestPrecision>& padded = precisions_.emplace_back();
    AttestPrecision& p = padded.value;
    p = source_.raw<AttestPrecision>();
    p.size = source_.mostly<std::uint32_t>(sizeof p);
    padded.behind[source_.below(256)] = source_.raw<std::uint8_t>();
    return &p;
  }

  void add_kernel() {
    Padded<AttestKernel>& padded = padded_kernels_.emplace_back();
    AttestKernel& k = padded.value;
    k.size = source_.mostly<std::uint32_t>(sizeof k);
    k.memory_space = source_.mostly(small_u32(2));
    texts_.push_back("kernel" + std::to_string(kernels_.size()));
    k.name = source_.below(8) == 0 ? text() : texts_.back().c_str();
    k.summary = text();
    std::vector<AttestFormat>& types = types_.emplace_back();
    for (std::size_t i = source_.below(5); i > 0; --i) types.push_back(source_.mostly(format()));
    k.element_types = types.empty() ? nullptr : types.data();
    k.element_type_count = types.empty() ? source_.mostly<std::size_t>(0) : types.size();
    k.operation = operation();
    k.masks = source_.mostly(1 + small_u32(32));
    std::vector<std::int64_t>& dims = dims_.emplace_back();
    for (std::size_t i = source_.below(5); i > 0; --i) {
      dims.push_back(source_.mostly<std::int64_t>(1 + source_.raw<std::uint8_t>()));
    }
    k.head_dims = dims.empty() ? nullptr : dims.data();
    k.head_dim_count = dims.empty() ? source_.mostly<std::size_t>(0) : dims.size();
    k.head_dim_min = source_.mostly<std::int64_t>(0);
    k.head_dim_max = source_.mostly<std::int64_t>(0);
    k.head_dim_multiple = source_.mostly<std::int64_t>(0);
    k.query_len_max = source_.mostly<std::int64_t>(0);
    k.key_len_max = source_.mostly<std::int64_t>(0);
    k.only_equal_heads = source_.mostly<std::uint32_t>(0);
    k.only_contiguous = source_.mostly<std::uint32_t>(0);
    k.pointer_alignment_bytes = source_.mostly<std::uint32_t>(16);
    k.stride_alignment_bytes = source_.mostly<std::uint32_t>(0);
    k.is_not_deterministic = source_.mostly<std::uint32_t>(0);
    k.features = source_.mostly(small_u32(32));
    for (std::uint32_t AttestKernel::*flag :
         {&AttestKernel::is_not_batch_invariant, &AttestKernel::depends_on_alignment,
          &AttestKernel::shares_reference, &AttestKernel::dataflow,
          &AttestKernel::spreads_hidden_nan, &AttestKernel::nan_rows_may_have_empty_lse,
          &AttestKernel::takes_any_lone_stride}) {
      k.*flag = source_.mostly(small_u32(2));
    }
    static constexpr std::array<const char*, 2> missing{"lse", "o"};
    k.missing_outputs = missing.data() + source_.below(2);
    k.missing_output_count = source_.mostly<std::size_t>(source_.below(2));
    if (source_.below(8) == 0) k.unavailable = text();
    k.query_len_multiple = source_.mostly<std::int64_t>(0);
    k.key_len_multiple = source_.mostly<std::int64_t>(0);
    std::vector<AttestPlan>& plans = plans_.emplace_back();
    for (std::size_t i = source_.below(4); i > 0; --i) plans.push_back(plan());
    k.plans = plans.empty() ? nullptr : plans.data();
    k.plan_count = plans.size();
    k.precision = precision();
    if (source_.below(16) != 0) k.run = [](const AttestRun*) -> const char* { return "no"; };
    padded.behind[source_.below(256)] = source_.mostly<std::uint8_t>(0);
    kernels_.push_back(source_.below(32) == 0 ? nullptr : &k);
  }

  Source source_;
  std::deque<std::string> texts_;  // deques: addresses stay
  std::deque<std::vector<AttestPlanField>> fields_;
  std::deque<std::vector<AttestPlan>> plans_;
  std::deque<std::vector<std::int64_t>> dims_;
  std::deque<std::vector<AttestFormat>> types_;
  std::deque<Padded<AttestPrecision>> precisions_;
  std::deque<Padded<AttestKernel>> padded_kernels_;
  std::vector<const AttestKernel*> kernels_;
  Padded<AttestPlugin> plugin_{};
};

/// Checks the errors that roundings of any operation declare.
void check_errors(const auto& how) {
  require(how.division_error > 0 && how.division_error <= 1 && how.log_error > 0 &&
              how.log_error <= 1 && how.exp.relative_error >= 0 && how.exp.argument_error >= 0,
          "errors are numbers from 0 to 1");
}

/// Checks what generators and laws rely on.
void check_kernel(const KernelInfo& kernel) {
  require(!kernel.name.empty() && kernel.plugin == "fuzz", "a kernel has a name and a plugin");
  require(!kernel.element_types.empty() && !kernel.masks.empty(), "a kernel has types and masks");
  const std::int64_t head_dim = kernel.head_dims.empty() ? 64 : kernel.head_dims.front();
  for (const std::int64_t key_len : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 24}) {
    const Problem problem{.operation = kernel.operation,
                          .key_len = key_len,
                          .head_dim = head_dim,
                          .mask = kernel.masks.back(),
                          .element_type = kernel.element_types.back(),
                          .scale = default_scale(head_dim)};
    require(!kernel.plans(problem).empty(), "a kernel has plans");
    for (const Plan& plan : kernel.plans(problem)) {
      (void)why_unsupported(kernel, {.problem = problem, .plan = plan});
      require(kernel.workspace_bytes(problem, plan) == 0, "no scratch unless it asks");
      const Roundings roundings = kernel.precision(problem, plan);
      if (kernel.operation == &combine_operation) {
        check_errors(roundings.as<MergeRoundings>());
        continue;
      }
      if (kernel.operation == &backward_operation) {
        const auto& how = roundings.as<BackwardRoundings>();
        require(how.delta_chain >= 1 && how.dq_chain >= 1 && how.dq_parts >= 1 &&
                    how.kv_chain >= 1 && how.kv_tiles >= 1 && how.kv_parts >= 1,
                "counts are positive");
        continue;
      }
      if (kernel.operation == &select_operation) {
        (void)roundings.as<SelectRoundings>();
        continue;
      }
      const auto& precision = roundings.as<PrecisionPlan>();
      check_errors(precision);
      require(precision.blocks >= 1 && precision.splits >= 1 && precision.normaliser_chain >= 1,
              "counts are positive");
      require(precision.softcap_error > 0 && precision.softcap_error <= 1, "an error");
      require(precision.reference_lag >= 0 && precision.reference_lag <= 64 &&
                  precision.weight_scale > 0 && precision.promoted_keys >= 0,
              "a lag, a power of two, a count");
      for (const Parts& parts : {precision.score_parts, precision.value_parts}) {
        require(parts.count >= 1 && parts.count <= 3 && parts.cut >= 0 &&
                    parts.cut <= parts.count && parts.scaled_to >= 0,
                "factors are read in 1 to 3 parts");
      }
    }
  }
}

}  // namespace

void fuzz_plugin(std::span<const std::uint8_t> bytes) {
  const Descriptor descriptor{Source(bytes)};
  returns_or_complains([&] {
    for (const KernelInfo& kernel : kernels_of(descriptor.get(), "fuzz")) check_kernel(kernel);
  });
}

}  // namespace attest
