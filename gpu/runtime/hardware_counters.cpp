#include "gpu/runtime/hardware_counters.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <map>

#include "core/base/error.hpp"
#include "core/records/hardware_counters.hpp"
#include "gpu/runtime/counter_schedule.hpp"
#include "gpu/runtime/cuda_error.hpp"
#include "gpu/runtime/cupti_library.hpp"

namespace attest {
namespace {

std::string chip_name(int ordinal) {
  ATTEST_CUPTI_PARAMS(CUpti_Device_GetChipName_Params, p);
  p.deviceIndex = static_cast<std::size_t>(ordinal);
  ATTEST_CUPTI_CHECK(cuptiDeviceGetChipName, p);
  return p.pChipName;
}

/// Context of the current device, made when there is none yet. From the driver at run time, so that
/// nothing links to it.
CUcontext current_context() {
  ATTEST_CUDA_CHECK(cudaFree(nullptr));
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  ATTEST_CUDA_CHECK(
      cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &entry, 4000, cudaEnableDefault, &found));
  CUcontext context = nullptr;
  if (found == cudaDriverEntryPointSuccess && entry != nullptr) {
    (void)reinterpret_cast<CUresult (*)(CUcontext*)>(entry)(&context);
  }
  return context;
}

void require_supported(int ordinal) {
  ATTEST_CUPTI_PARAMS(CUpti_Profiler_DeviceSupported_Params, p);
  p.cuDevice = ordinal;
  p.api = CUPTI_PROFILER_RANGE_PROFILING;
  ATTEST_CUPTI_CHECK(cuptiProfilerDeviceSupported, p);
  if (p.isSupported == CUPTI_PROFILER_CONFIGURATION_SUPPORTED) return;
  std::vector<std::string> reasons;
  for (const auto& [level, reason] :
       {std::pair(p.architecture, "its architecture is too old"), std::pair(p.sli, "SLI is on"),
        std::pair(p.vGpu, "it is a virtual GPU whose profiling is off"),
        std::pair(p.confidentialCompute, "confidential computing is on"),
        std::pair(p.cmp, "it is made for mining"), std::pair(p.wsl, "WSL does not offer them")}) {
    if (level != CUPTI_PROFILER_CONFIGURATION_SUPPORTED) reasons.emplace_back(reason);
  }
  throw MachineError(fmt::format(
      "the GPU has no hardware counters as it is configured: {}",
      reasons.empty() ? "CUPTI does not say why" : fmt::format("{}", fmt::join(reasons, ", "))));
}

std::vector<std::uint8_t> available_counters(CUcontext context) {
  ATTEST_CUPTI_PARAMS(CUpti_Profiler_GetCounterAvailability_Params, p);
  p.ctx = context;
  ATTEST_CUPTI_CHECK(cuptiProfilerGetCounterAvailability, p);
  std::vector<std::uint8_t> image(p.counterAvailabilityImageSize);
  p.pCounterAvailabilityImage = image.data();
  ATTEST_CUPTI_CHECK(cuptiProfilerGetCounterAvailability, p);
  return image;
}

/// The range profiler, from its enabling to its end.
class RangeProfiler {
 public:
  explicit RangeProfiler(CUcontext context) {
    ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_Enable_Params, p);
    p.ctx = context;
    ATTEST_CUPTI_CHECK(cuptiRangeProfilerEnable, p);
    object_ = p.pRangeProfilerObject;
  }
  RangeProfiler(const RangeProfiler&) = delete;
  RangeProfiler& operator=(const RangeProfiler&) = delete;
  ~RangeProfiler() {
    ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_Disable_Params, p);
    p.pRangeProfilerObject = object_;
    (void)ask_cupti("cuptiRangeProfilerDisable", p);
  }

  [[nodiscard]] std::vector<Measurement> count(const CounterSchedule& schedule,
                                               const std::function<void()>& before,
                                               const std::function<void()>& work) {
    std::vector<std::uint8_t> data = counter_data(schedule);
    configure(schedule, data);
    std::size_t passes = 0;
    for (bool is_last = false; !is_last; ++passes) {
      if (passes > schedule.passes()) {
        throw MachineError(fmt::format("CUPTI asks for more than the {} passes that it announced",
                                       schedule.passes()));
      }
      before();
      is_last = run_pass(work);
    }
    decode();
    return schedule.measurements(data);
  }

 private:
  [[nodiscard]] std::vector<std::uint8_t> counter_data(const CounterSchedule& schedule) {
    std::vector<const char*> metrics = schedule.metrics();
    ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataSize_Params, size);
    size.pRangeProfilerObject = object_;
    size.pMetricNames = metrics.data();
    size.numMetrics = metrics.size();
    size.maxNumOfRanges = 1;
    size.maxNumRangeTreeNodes = 1;
    ATTEST_CUPTI_CHECK(cuptiRangeProfilerGetCounterDataSize, size);
    std::vector<std::uint8_t> image(size.counterDataSize);
    ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, p);
    p.pRangeProfilerObject = object_;
    p.counterDataSize = image.size();
    p.pCounterData = image.data();
    ATTEST_CUPTI_CHECK(cuptiRangeProfilerCounterDataImageInitialize, p);
    return image;
  }

  void configure(const CounterSchedule& schedule, std::vector<std::uint8_t>& counter_data) {
    ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_SetConfig_Params, p);
    p.pRangeProfilerObject = object_;
    p.configSize = schedule.config_image().size();
    p.pConfig = schedule.config_image().data();
    p.counterDataImageSize = counter_data.size();
    p.pCounterDataImage = counter_data.data();
    p.range = CUPTI_UserRange;
    p.replayMode = CUPTI_UserReplay;
    p.maxRangesPerPass = 1;
    p.numNestingLevels = 1;
    p.minNestingLevel = 1;
    p.targetNestingLevel = 1;
    ATTEST_CUPTI_CHECK(cuptiRangeProfilerSetConfig, p);
  }

  /// True when it was the last pass.
  [[nodiscard]] bool run_pass(const std::function<void()>& work) {
    ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_Start_Params, start);
    start.pRangeProfilerObject = object_;
    ATTEST_CUPTI_CHECK(cuptiRangeProfilerStart, start);
    ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_PushRange_Params, push);
    push.pRangeProfilerObject = object_;
    push.pRangeName = "work";
    ATTEST_CUPTI_CHECK(cuptiRangeProfilerPushRange, push);
    ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_PopRange_Params, pop);
    pop.pRangeProfilerObject = object_;
    ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_Stop_Params, stop);
    stop.pRangeProfilerObject = object_;
    try {
      work();
    } catch (...) {  // what begins must end, or CUPTI serves nobody any more
      (void)ask_cupti("cuptiRangeProfilerPopRange", pop);
      (void)ask_cupti("cuptiRangeProfilerStop", stop);
      throw;
    }
    ATTEST_CUPTI_CHECK(cuptiRangeProfilerPopRange, pop);
    ATTEST_CUPTI_CHECK(cuptiRangeProfilerStop, stop);
    return stop.isAllPassSubmitted != 0;
  }

  void decode() {
    ATTEST_CUPTI_PARAMS(CUpti_RangeProfiler_DecodeData_Params, p);
    p.pRangeProfilerObject = object_;
    ATTEST_CUPTI_CHECK(cuptiRangeProfilerDecodeData, p);
    if (p.numOfRangeDropped != 0) throw MachineError("CUPTI dropped what its counters said");
  }

  CUpti_RangeProfiler_Object* object_ = nullptr;
};

}  // namespace

struct HardwareCounters::Target {
  CUcontext context = nullptr;
  std::string chip;
  std::vector<std::uint8_t> available;
  /// Schedules by the names of their counters: making one takes a third of a second.
  std::map<std::string, CounterSchedule> schedules;

  const CounterSchedule& schedule(const std::vector<HardwareCounter>& counters) {
    std::string key;
    for (const HardwareCounter& counter : counters) key += counter.name + " ";
    return schedules.try_emplace(key, chip, available, counters).first->second;
  }
};

HardwareCounters::HardwareCounters(int ordinal) : target_(std::make_unique<Target>()) {
  target_->context = current_context();
  ATTEST_CUPTI_PARAMS(CUpti_Profiler_Initialize_Params, p);
  ATTEST_CUPTI_CHECK(cuptiProfilerInitialize, p);
  require_supported(ordinal);
  target_->chip = chip_name(ordinal);
  target_->available = available_counters(target_->context);
}

HardwareCounters::~HardwareCounters() = default;

std::vector<Measurement> HardwareCounters::count(std::span<const std::string> names,
                                                 const std::function<void()>& before,
                                                 const std::function<void()>& work) {
  const std::vector<HardwareCounter> counters = hardware_counters_of(names);
  // A group by itself: CUPTI would spread the two sides of a quotient over passes, and runs differ.
  std::map<std::string, std::vector<HardwareCounter>> groups;
  for (const HardwareCounter& counter : counters) groups[counter.group].push_back(counter);
  for (const auto& [name, group] : groups) (void)target_->schedule(group);  // all names are right
  std::map<std::string, Measurement> counted;
  for (const auto& [name, group] : groups) {
    const CounterSchedule& schedule = target_->schedule(group);
    RangeProfiler profiler(target_->context);
    for (Measurement& m : profiler.count(schedule, before, work)) counted[m.name] = std::move(m);
  }
  std::vector<Measurement> result;
  for (const HardwareCounter& counter : counters) result.push_back(counted.at(counter.name));
  return result;
}

}  // namespace attest
