#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/records/hardware_counters.hpp"
#include "experiments/study/language/axis.hpp"
#include "experiments/study/language/error_metrics.hpp"
#include "experiments/study/language/schema.hpp"

namespace attest {
namespace {

Form text_form(std::string allowed) {
  return {.allowed = std::move(allowed)};
}
Form word_form(std::string allowed, std::string pattern) {
  return {.kind = Form::Kind::word, .allowed = std::move(allowed), .pattern = std::move(pattern)};
}
Form whole_form(double low, double high) {
  return {.kind = Form::Kind::whole, .low = low, .high = high};
}
Form choice_form(std::vector<std::string> choices) {
  return {.kind = Form::Kind::choice, .choices = std::move(choices)};
}
Form claim_form() {
  return word_form("the id of a claim such as Q3.20 or P6", "[A-Z]{1,2}[0-9]*[a-z]?(\\.[0-9]+)?");
}
Form percent_form(std::string example) {
  return word_form("a share such as " + example, "[0-9]{1,3}(\\.[0-9]{1,6})? ?%");
}
Form name_form(std::string allowed) {
  return word_form(std::move(allowed), "[A-Za-z_][A-Za-z0-9_.]*");
}
Form expression_form(std::string example) {
  return {.kind = Form::Kind::expression,
          .allowed = "an expression such as " + std::move(example),
          .or_expression = true};
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names{"time", "rate", "bandwidth", "sm_clock", "power", "temperature"};
  for (const ErrorMetric& metric : error_metrics()) names.push_back(metric.name);
  names.emplace_back("model");
  return names;
}

/// How a value of the axis is written. Numbers of a problem may be computed; of a Plan a choice may
/// be given by its number, and every value there is by `all`.
Form form_of(const Axis& axis) {
  if (axis.registered_choices != nullptr) {
    return name_form(fmt::format("the name of a {}; {}", axis.name, axis.summary));
  }
  const bool is_of_plan = axis.group == Axis::Group::plan;
  Form form = axis.is_choice() ? choice_form(axis.choices) : whole_form(axis.low, axis.high);
  if (!axis.is_choice() && !axis.is_whole) form.kind = Form::Kind::number;
  form.or_expression = !axis.is_choice() && axis.group == Axis::Group::problem;
  form.or_number = axis.is_choice() && is_of_plan;
  if (is_of_plan) form.choices.emplace_back("all");
  return form;
}

std::vector<SpecKey> axis_keys(Axis::Group group) {
  std::vector<SpecKey> keys;
  for (const Axis* axis : keys_of(group)) {
    keys.push_back({.name = axis->name, .summary = axis->summary, .form = form_of(*axis)});
  }
  return keys;
}

std::vector<SpecKey> sampling_keys() {
  return {
      {.name = "method",
       .summary = "every point; some drawn at random; or all, of which the slower part leaves "
                  "after each round",
       .form = choice_form({"grid", "random", "halving"}),
       .is_required = true},
      {.name = "points", .summary = "how many are drawn", .form = whole_form(1, 20'000)},
      {.name = "seed", .summary = "of the draw", .form = whole_form(0, 0x1p53)},
      {.name = "keep", .summary = "share that stays after a round", .form = percent_form("50%")}};
}

std::vector<SpecKey> expect_keys() {
  return {{.name = "that",
           .summary = "what is expected of the results",
           .form = expression_form("median(time where plan.stages == 2) < 5ms"),
           .is_required = true},
          {.name = "because", .summary = "why", .form = text_form("a sentence")},
          {.name = "claim", .summary = "which claim it checks", .form = claim_form()},
          {.name = "tolerance",
           .summary = "sides of a comparison that are nearer are equal",
           .form = percent_form("2%")}};
}

std::vector<SpecKey> plot_keys() {
  const Form name = name_form("the name of an axis or a measurement such as plan.key_tile or time");
  return {{.name = "kind",
           .summary = "heat_map needs x, y and value; lines and bars x and y; pareto and roofline "
                      "choose theirs",
           .form = choice_form({"heat_map", "lines", "pareto", "roofline", "bars"}),
           .is_required = true},
          {.name = "x", .summary = "across", .form = name},
          {.name = "y", .summary = "upwards", .form = name},
          {.name = "value", .summary = "shade of a heat map", .form = name},
          {.name = "color", .summary = "one colour for each value of it", .form = name},
          {.name = "title", .summary = "above the plot", .form = text_form("a sentence")}};
}

std::vector<SpecKey> all_keys() {
  Form sampling = text_form("grid, or method, points, seed, keep");
  sampling.choices = {"grid"};
  Form plan = text_form("all, axes, or a list of axes");
  plan.choices = {"all"};
  return {
      {.name = "name",
       .summary = "of the study and its results folder; the file's name if not given",
       .form = word_form("a name of small letters, digits and _", "[a-z][a-z0-9_]{0,63}")},
      {.name = "question",
       .summary = "the one question that it answers",
       .form = text_form("a sentence"),
       .is_required = true},
      {.name = "claims",
       .summary = "claims it is about",
       .shape = KeyShape::list,
       .form = claim_form()},
      {.name = "kernels",
       .summary = "names or globs; see attest list kernels",
       .shape = KeyShape::one_or_list,
       .form =
           word_form("a kernel's name or a glob such as k5_padded_tiles or k*", "[A-Za-z0-9_*?/]+"),
       .is_required = true},
      {.name = "problem",
       .summary = "what is computed: axes, all combinations; a list of them is put together",
       .shape = KeyShape::axes_list,
       .keys = axis_keys(Axis::Group::problem)},
      {.name = "plan",
       .summary =
           "how: axes over fields of the Plan; other fields are those of the default Plan or, "
           "where no such Plan is offered, of the offered one that is nearest; `all` for a "
           "field: every value that offered Plans have; for the whole: every offered Plan",
       .shape = KeyShape::axes_list,
       .form = plan,
       .keys = axis_keys(Axis::Group::plan)},
      {.name = "layout",
       .summary = "how K and V lie in memory",
       .shape = KeyShape::axes,
       .keys = axis_keys(Axis::Group::layout)},
      {.name = "inputs",
       .summary = "how Q, K and V are filled",
       .shape = KeyShape::axes,
       .keys = axis_keys(Axis::Group::inputs)},
      {.name = "executor",
       .summary =
           "auto: the GPU where there is one, otherwise simt, which counts and does not time",
       .form = choice_form({"auto", "gpu", "simt", "cpu"})},
      {.name = "metrics",
       .summary = "what is recorded of a point",
       .shape = KeyShape::list,
       .form = choice_form(metric_names())},
      {.name = "counters",
       .summary = "hardware counters, in runs of their own",
       .shape = KeyShape::list,
       .form = word_form(
           "dram, l2, tensor, shared, occupancy, stalls, a counter of one such as "
           "l2_hit_rate, or a metric such as dram__bytes_read.sum",
           fmt::format("{}|[a-z0-9]+__[A-Za-z0-9_.]+", fmt::join(hardware_counter_names(), "|")))},
      {.name = "baselines",
       .summary = "what every point is timed against in the same rounds: NAME, NAME with PLAN, and "
                  "`as OTHER` to call it otherwise",
       .shape = KeyShape::list,
       .form =
           text_form("cudnn_sdpa, k5_padded_tiles with qt32 kt32, or either followed by as NAME")},
      {.name = "cache",
       .summary = "the L2 before a launch: as the launch before left it, or flushed",
       .form = choice_form({"hot", "cold"})},
      {.name = "launch",
       .summary = "of a timing: one by one into the stream, which shows what a call costs the host "
                  "where that is longer, or replayed from a CUDA graph",
       .form = choice_form({"stream", "graph"})},
      {.name = "constraints",
       .summary = "points where one is false are skipped",
       .shape = KeyShape::list,
       .form = expression_form("shared_bytes <= 227KiB")},
      {.name = "sampling",
       .summary = "which of the points run",
       .shape = KeyShape::keys,
       .form = sampling,
       .keys = sampling_keys()},
      {.name = "repeats", .summary = "rounds of every point", .form = whole_form(3, 1000)},
      {.name = "target_confidence",
       .summary = "instead of repeats: measure until the 95 % interval is within this share of the "
                  "ratio to the baseline, or of the time; 1% if not given",
       .form = percent_form("1%")},
      {.name = "seeds",
       .summary = "of the inputs: how many, or a list of them",
       .shape = KeyShape::one_or_list,
       .form = whole_form(0, 0x1p53)},
      {.name = "time_budget",
       .summary = "of the whole run",
       .form = word_form("a time such as 40s or 5min", "[0-9]{1,6}(\\.[0-9]{1,3})? ?(ms|s|min|h)")},
      {.name = "expect",
       .summary = "what the results are expected to say",
       .shape = KeyShape::keys_list,
       .keys = expect_keys()},
      {.name = "plots",
       .summary = "pictures of the report",
       .shape = KeyShape::keys_list,
       .keys = plot_keys()}};
}

}  // namespace

const std::vector<SpecKey>& study_keys() {
  static const std::vector<SpecKey> keys = all_keys();
  return keys;
}

}  // namespace attest
