#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/temporary_folder.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "experiments/study/language/point.hpp"
#include "experiments/study/run.hpp"
#include "verify/workers/case_runner.hpp"

// Studies of emulated kernels that say they run on a GPU, timed by what they say: the whole of a
// run but for the GPU.

namespace attest {
/// For tests: an emulated kernel that says it runs on a GPU and how long a launch takes.
inline KernelInfo pretended_gpu_kernel(const std::string& name, std::function<double()> time_ms) {
  KernelInfo kernel = *find_kernel("o5_deferred", Executor::cpu);
  kernel.name = name;
  kernel.executor = Executor::gpu;
  kernel.timed_launch = [time_ms = std::move(time_ms), launch = kernel.launch](
                            const ForwardArguments& a, Device& device, LaunchesInRow) {
    launch(a, device);
    return time_ms();
  };
  return kernel;
}

/// Judges such kernels where they really run.
class PretendingRunner final : public CaseRunner {
 public:
  [[nodiscard]] CaseAnswer run(const KernelInfo& kernel, const CaseTask& task) override {
    KernelInfo real = kernel;
    CaseTask there = task;
    if (kernel.executor == Executor::gpu) real.executor = there.executor = Executor::cpu;
    ++cases;
    return inner_.run(real, there);
  }
  static inline std::atomic<int> cases = 0;  ///< of all runners

 private:
  InProcessRunner inner_;
};

inline Case case_of(const KernelInfo& kernel, const std::string& problem, std::uint64_t seed = 1) {
  Case c{.kernel = kernel.name, .problem = problem_from_string(problem), .inputs = {.seed = seed}};
  c.plan = kernel.plans(c.problem).front();
  return c;
}

inline Point point_of(const KernelInfo& kernel, const std::string& problem,
                      std::vector<Point::BaselineCase> baselines = {}) {
  return {.kernel = &kernel,
          .subject = case_of(kernel, problem),
          .axes = {{"problem.key_len", problem}},
          .baselines = std::move(baselines)};
}

/// Host memory with the clocks and counters of a GPU.
class PretendedGpu final : public Device {
 public:
  std::byte* upload(const BufferImage& image) override { return memory_.upload(image); }
  void download(const std::byte* from, std::span<std::byte> to) override {
    memory_.download(from, to);
  }
  void release(std::byte* buffer) noexcept override { memory_.release(buffer); }
  void synchronize() override {
    if (is_lost) throw MachineError("an illegal memory access");
  }
  double time_ms(const std::function<void()>& work) override { return memory_.time_ms(work); }
  double replay_ms(const std::function<void()>& work) override {
    ++replays;
    return time_ms(work);
  }
  std::optional<DeviceState> state() override {
    return DeviceState{.sm_clock_mhz = 1500,
                       .memory_clock_mhz = 3000,
                       .power_w = 690,
                       .temperature_c = NAN,
                       .throttle_reasons = reasons};
  }
  std::map<std::string, double> throttled_ms() override {
    if (power_cap_ms_a_reading != 0) counted_ms["power cap"] += power_cap_ms_a_reading;
    return counted_ms;
  }
  void flush_cache() override { ++flushes; }
  std::vector<Measurement> count(std::span<const std::string> counters,
                                 const std::function<void()>& work) override {
    if (forbids_counters) throw MachineError("the driver forbids counters");
    work();
    return {{counters[0], 42, "B"}};
  }
  std::string description() const override { return "a pretended GPU"; }

  static inline std::optional<std::vector<std::string>> reasons;
  static inline std::map<std::string, double> counted_ms;
  static inline double power_cap_ms_a_reading = 0;  ///< by which that counter grows
  static inline bool forbids_counters = false, is_lost = false;
  static inline int flushes = 0;
  static inline int replays = 0;

 private:
  HostMemoryDevice memory_;
};

/// Relative, normal; the widest since the test began bounds what can be made of noisy times.
struct Noise {
  static constexpr double sigma = 0.002;
  static inline std::uint64_t draws = 0;
  static inline double widest = 0;
};
inline double noisy(double ms) {
  const double noise = Noise::sigma * random_normal(11, 0, ++Noise::draws);
  Noise::widest = std::max(Noise::widest, std::abs(noise));
  return ms * (1 + noise);
}

struct AStudy : testing::Test {
  AStudy() {
    PretendedGpu::reasons.emplace();
    PretendedGpu::counted_ms.clear();
    PretendedGpu::power_cap_ms_a_reading = 0;
    PretendedGpu::forbids_counters = PretendedGpu::is_lost = false;
    PretendedGpu::flushes = 0;
    PretendedGpu::replays = 0;
    Noise::widest = 0;
    PretendingRunner::cases = 0;
    spec.name = "a_study";
    spec.question = "how fast?";
    spec.baselines.emplace_back().name = "rival";
    spec.seeds = {1};
  }

  void add(const KernelInfo& kernel, const std::string& problem) {
    expansion.points.push_back(
        point_of(kernel, problem,
                 {{.name = "rival", .kernel = &rival, .subject = case_of(rival, problem)}}));
  }
  StudyRun options() {
    StudyRun run;
    run.verified = root / "verified.jsonl";
    run.build = "build";
    run.jobs = 2;
    run.make_runner = [] { return std::make_unique<PretendingRunner>(); };
    run.make_device = [](Executor executor) -> std::unique_ptr<Device> {
      if (executor == Executor::gpu) return std::make_unique<PretendedGpu>();
      return make_device(executor);
    };
    run.model = [](const KernelInfo&, const Problem&, const Plan&) {
      return std::vector<Measurement>{{"flops", 7, "1"}};
    };
    run.warm_up_s = 0.001;
    return run;
  }
  StudyOutcome run(const StudyRun& run) { return run_study(spec, expansion, folder, run); }
  StudyOutcome run() { return run(options()); }
  [[nodiscard]] std::vector<Record> records(const std::string& kind = "study") const {
    std::vector<Record> of_kind;
    for (Record& record : folder.records()) {
      if (record.kind == kind) of_kind.push_back(std::move(record));
    }
    return of_kind;
  }
  /// A median lies between the values that it is of.
  static void expect_time(double got_ms, double want_ms) {
    EXPECT_GE(got_ms, want_ms * (1 - Noise::widest));
    EXPECT_LE(got_ms, want_ms * (1 + Noise::widest));
  }
  static void expect_ratio_of_times(double got, double want) {
    EXPECT_GE(got, want * (1 - Noise::widest) / (1 + Noise::widest));
    EXPECT_LE(got, want * (1 + Noise::widest) / (1 - Noise::widest));
  }
  [[nodiscard]] Record record_of(const std::string& kernel) const {
    for (const Record& record : records()) {
      if (record.labels.contains("contender") && record.labels.at("contender") == kernel) {
        return record;
      }
    }
    ADD_FAILURE() << "no record of " << kernel;
    return {};
  }
  static double value(const Record& record, const std::string& name) {
    const Measurement* found = find_measurement(record.measurements, name);
    return found == nullptr ? -1 : found->value;
  }

  TemporaryFolder root;
  ResultsFolder folder{root / "results"};
  StudySpec spec;
  Expansion expansion;
  KernelInfo fast = pretended_gpu_kernel("fast", [] { return noisy(1); });
  KernelInfo slow = pretended_gpu_kernel("slow", [] { return noisy(2); });
  KernelInfo rival = pretended_gpu_kernel("rival_kernel", [] { return noisy(3); });
  /// Scores that are 1 % too large.
  KernelInfo wrong = [] {
    KernelInfo kernel = pretended_gpu_kernel("wrong", [] {
      ADD_FAILURE() << "a wrong kernel was timed";
      return 1.0;
    });
    const auto right = kernel.launch;
    kernel.launch = [right](ForwardArguments a, Device& device) {
      a.problem.scale *= 1.01F;
      right(a, device);
    };
    return kernel;
  }();
};

}  // namespace attest
