#include "gpu/runtime/counter_schedule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/near_names.hpp"
#include "core/base/text.hpp"
#include "gpu/runtime/cupti_library.hpp"

namespace attest {

std::string counter_unit(const std::string& cupti_unit) {
  if (cupti_unit.empty()) return "1";
  if (cupti_unit == "byte") return "B";
  if (cupti_unit == "byte/second") return "B/s";
  if (cupti_unit == "percent") return "%";
  if (cupti_unit == "second") return "s";
  return cupti_unit;
}

struct CounterSchedule::Host {
  CUpti_Profiler_Host_Object* object = nullptr;
  std::string chip;
  std::vector<std::uint8_t> available;
  std::vector<HardwareCounter> counters;
  std::vector<std::string> metrics;
  std::vector<std::uint8_t> config;
  std::size_t passes = 0;

  Host(const std::string& chip_name, std::span<const std::uint8_t> available_counters)
      : chip(chip_name), available(available_counters.begin(), available_counters.end()) {
    ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_Initialize_Params, p);
    p.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    p.pChipName = chip.c_str();
    p.pCounterAvailabilityImage = available.empty() ? nullptr : available.data();
    ATTEST_CUPTI_CHECK(cuptiProfilerHostInitialize, p);
    object = p.pHostObject;
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() {
    ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_Deinitialize_Params, p);
    p.pHostObject = object;
    (void)ask_cupti("cuptiProfilerHostDeinitialize", p);
  }

  /// Names without rollups, for suggestions: those that the profilers use for themselves, which
  /// have a dot, left out.
  std::vector<std::string> base_metrics() const {
    std::vector<std::string> names;
    for (int type = 0; type < CUPTI_METRIC_TYPE__COUNT; ++type) {
      ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_GetBaseMetrics_Params, p);
      p.pHostObject = object;
      p.metricType = static_cast<CUpti_MetricType>(type);
      ATTEST_CUPTI_CHECK(cuptiProfilerHostGetBaseMetrics, p);
      for (const char* const name : std::span(p.ppMetricNames, p.numMetrics)) {
        if (std::string_view(name).find('.') == std::string_view::npos) names.emplace_back(name);
      }
    }
    return names;
  }

  [[noreturn]] void refuse(const std::string& metric) const {
    const std::size_t dot = metric.find('.');
    const std::string base = metric.substr(0, dot);
    std::vector<std::string> known = base_metrics();
    const bool base_is_known = std::ranges::find(known, base) != known.end();
    if (base_is_known) {
      throw InvalidInput(fmt::format(
          "counter '{}' has {}; allowed for this metric: {}", printable(metric, 120),
          dot == std::string::npos ? "no rollup" : "an unknown rollup",
          base.find("__average") != std::string::npos || base.find("_per_") != std::string::npos ||
                  base.ends_with("_rate")
              ? ".ratio, .pct, .max_rate"
              : ".sum, .avg, .min, .max, each also with .per_second, "
                ".pct_of_peak_sustained_active, .pct_of_peak_sustained_elapsed and others"));
    }
    const std::vector<std::string> near = near_names(base, known);
    throw InvalidInput(fmt::format("counter '{}' is no metric of {}{}{}", printable(metric, 120),
                                   chip, near.empty() ? "" : "; near: ", fmt::join(near, ", ")));
  }

  /// Throws where the chip has no such metric; otherwise its unit.
  std::string unit_of(const std::string& metric) const {
    ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_GetMetricProperties_Params, p);
    p.pHostObject = object;
    p.pMetricName = metric.c_str();
    // Without a rollup a metric has properties, and no value.
    if (metric.find('.') == std::string::npos ||
        ask_cupti("cuptiProfilerHostGetMetricProperties", p) != CUPTI_SUCCESS) {
      refuse(metric);
    }
    return counter_unit(p.pDimUnit == nullptr ? "" : p.pDimUnit);
  }

  void add(HardwareCounter counter) {
    const std::string unit = unit_of(counter.metric);
    if (counter.unit.empty()) counter.unit = unit;
    for (const std::string& metric : {counter.metric, counter.per, counter.rest}) {
      if (metric.empty() || std::ranges::find(metrics, metric) != metrics.end()) continue;
      (void)unit_of(metric);
      metrics.push_back(metric);
    }
    counters.push_back(std::move(counter));
  }

  std::vector<const char*> metric_pointers() const {
    std::vector<const char*> pointers;
    for (const std::string& metric : metrics) pointers.push_back(metric.c_str());
    return pointers;
  }

  void make_config() {
    std::vector<const char*> names = metric_pointers();
    ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics_Params, added);
    added.pHostObject = object;
    added.ppMetricNames = names.data();
    added.numMetrics = names.size();
    ATTEST_CUPTI_CHECK(cuptiProfilerHostConfigAddMetrics, added);
    ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
    size.pHostObject = object;
    ATTEST_CUPTI_CHECK(cuptiProfilerHostGetConfigImageSize, size);
    config.resize(size.configImageSize);
    ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImage_Params, image);
    image.pHostObject = object;
    image.configImageSize = config.size();
    image.pConfigImage = config.data();
    ATTEST_CUPTI_CHECK(cuptiProfilerHostGetConfigImage, image);
    ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_GetNumOfPasses_Params, needed);
    needed.configImageSize = config.size();
    needed.pConfigImage = config.data();
    ATTEST_CUPTI_CHECK(cuptiProfilerHostGetNumOfPasses, needed);
    passes = needed.numOfPasses;
  }
};

CounterSchedule::CounterSchedule(const std::string& chip, std::span<const std::uint8_t> available,
                                 std::vector<HardwareCounter> counters)
    : host_(std::make_unique<Host>(chip, available)) {
  for (HardwareCounter& counter : counters) host_->add(std::move(counter));
  if (!host_->metrics.empty()) host_->make_config();
}

std::vector<Measurement> CounterSchedule::measurements(
    std::span<const std::uint8_t> counter_data) const {
  std::vector<const char*> names = metrics();
  std::vector<double> values(names.size());
  ATTEST_CUPTI_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, p);
  p.pHostObject = host_->object;
  p.pCounterDataImage = counter_data.data();
  p.counterDataImageSize = counter_data.size();
  p.rangeIndex = 0;
  p.ppMetricNames = names.data();
  p.numMetrics = names.size();
  p.pMetricValues = values.data();
  ATTEST_CUPTI_CHECK(cuptiProfilerHostEvaluateToGpuValues, p);
  const auto value = [&](const std::string& metric) {
    const auto at = std::ranges::find(host_->metrics, metric) - host_->metrics.begin();
    return at < std::ssize(values) ? values[static_cast<std::size_t>(at)] : 0;
  };
  std::vector<Measurement> result;
  for (const HardwareCounter& counter : host_->counters) {
    const double number =
        value_of(counter, value(counter.metric), value(counter.per), value(counter.rest));
    result.push_back({counter.name, number, counter.unit});
  }
  return result;
}

CounterSchedule::~CounterSchedule() = default;

std::size_t CounterSchedule::passes() const {
  return host_->passes;
}

std::vector<const char*> CounterSchedule::metrics() const {
  return host_->metric_pointers();
}

const std::vector<std::uint8_t>& CounterSchedule::config_image() const {
  return host_->config;
}

}  // namespace attest
