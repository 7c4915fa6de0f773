#include "experiments/errors/error_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string_view>

#include "core/base/counted.hpp"
#include "core/base/text.hpp"
#include "verify/judge/compare.hpp"
#include "verify/judge/verdict.hpp"

namespace attest {
namespace {

std::string inputs_of(const ErrorsRow& row) {
  const InputSpec& inputs = row.the_case.inputs;
  const std::string_view truth = row.truth == Truth::unrounded     ? "_unrounded"
                                 : row.truth == Truth::exact_saved ? "_exact_saved"
                                                                   : "";
  return fmt::format("{}{}{}{}", inputs.family, truth, row.smooths_keys ? "_smoothed" : "",
                     inputs.magnitude == 1 ? "" : fmt::format(":{:g}", inputs.magnitude));
}

Record record_about(const ErrorsRow& row, std::string_view tensor) {
  Record record;
  record.kind = "errors";
  record.subject = row.the_case;
  record.labels = {{"contender", row.name},
                   {"executor", row.executor},
                   {"problem", to_string(row.the_case.problem)},
                   {"plan", to_string(row.the_case.plan)},
                   {"inputs", inputs_of(row)},
                   {"key_order", std::string(name_of(row.key_order))},
                   {"element_type", std::string(format_of(row.the_case.problem.element_type).name)},
                   {"tensor", std::string(tensor)}};
  if (row.the_case.layouts.paging.is_used()) {
    record.labels["layouts"] = to_string(row.the_case.layouts.paging);
  }
  if (!row.made_by.empty()) record.labels["outputs_made_by"] = row.made_by;
  record.measurements = {
      {"sets", static_cast<double>(row.sets), "1"},
      {"certified_reference_rows", static_cast<double>(row.certified_rows), "1"}};
  return record;
}

void add_profile(Record& record, const ErrorProfile& profile) {
  if (is_beyond_bound(profile)) record.verdict = name_of(Verdict::failed);
  record.labels["largest_error_at"] = to_string(profile.largest_at);
  record.measurements.insert(record.measurements.end(), profile.measurements.begin(),
                             profile.measurements.end());
  record.measurements.push_back({"largest_error_got", profile.largest_got, "value"});
  record.measurements.push_back({"largest_error_want", profile.largest_want, "value"});
}

/// Four digits: a picture needs no more, and a record of 2,048 cells stays small.
double short_number(double value) {
  return std::isfinite(value) ? std::strtod(fmt::format("{:.3e}", value).c_str(), nullptr) : value;
}

Record record_of_map(const ErrorsRow& row, std::string_view tensor, const ErrorMap& map) {
  Record record = record_about(row, tensor);
  record.kind = "error_map";
  record.measurements.push_back({"row_cells", static_cast<double>(map.row_cells), "1"});
  record.measurements.push_back({"column_cells", static_cast<double>(map.column_cells), "1"});
  for (std::int64_t cell = 0; cell < std::ssize(map.rmse); ++cell) {
    record.measurements.push_back(
        {fmt::format("rmse {} {}", cell / map.column_cells, cell % map.column_cells),
         short_number(map.rmse[static_cast<std::size_t>(cell)]), "value"});
  }
  return record;
}

void add_records(const ErrorsRow& row, std::string_view tensor, const TensorErrors& errors,
                 std::vector<Record>& records) {
  records.push_back(record_about(row, tensor));
  add_profile(records.back(), errors);
  for (const ErrorPart& part : errors.parts) {
    Record record = record_about(row, tensor);
    record.labels["by"] = name_of(part.axis);
    record.measurements.push_back({"first", static_cast<double>(part.first), "1"});
    record.measurements.push_back({"last", static_cast<double>(part.last), "1"});
    add_profile(record, part.errors);
    records.push_back(std::move(record));
  }
  if (errors.map) records.push_back(record_of_map(row, tensor, *errors.map));
}

void append_heading(std::string& to, const ErrorsRow& row, std::size_t width) {
  Problem problem = row.the_case.problem;
  problem.element_type = ElementType::fp32;  // named by the rows
  std::string text = to_string(problem);
  text.erase(text.rfind(" fp32"), 5);
  const std::string order =
      row.key_order == KeyOrder::drawn ? "" : fmt::format(", keys {}", name_of(row.key_order));
  const Paging& paging = row.the_case.layouts.paging;
  append(to, "\n{}{}, inputs {}{}, {}\n", text, paging.is_used() ? " " + to_string(paging) : "",
         inputs_of(row), order, counted(row.sets, "data set"));
  append(to, "{:<{}} {:<4} {:<4} {:<3} {:>9} {:>9} {:>9} {:>6} {:>6} {:>6}\n", "", width, "", "",
         "", "", "relative", "largest", "error", "/ bound", "");
  append(to, "{:<{}} {:<4} {:<4} {:<3} {:>9} {:>9} {:>9} {:>6} {:>6} {:>6}  {}\n", "kernel", width,
         "on", "type", "of", "RMSE", "L2", "error", "max", "p99", "median", "at");
}

void append_names(std::string& to, const ErrorsRow& row, std::string_view tensor,
                  std::size_t width) {
  append(to, "{:<{}} {:<4} {:<4} {:<3}", row.name, width, row.executor,
         format_of(row.the_case.problem.element_type).name, tensor);
}

void append_line(std::string& to, const ErrorsRow& row, std::string_view tensor,
                 const ErrorProfile& profile, std::size_t width, bool shows_plan) {
  append_names(to, row, tensor, width);
  append(to, " {:>9.3g} {:>9.3g} {:>9.3g}", profile.value("rmse"), profile.value("relative_l2"),
         profile.value("max_abs_error"));
  const bool has_bound = profile.has("error_over_bound_max");
  for (const char* name :
       {"error_over_bound_max", "error_over_bound_p99", "error_over_bound_median"}) {
    has_bound ? append(to, " {:>6.3f}", profile.value(name)) : append(to, " {:>6}", "-");
  }
  append(to, "  {}", to_string(profile.largest_at));
  if (has_bound && is_beyond_bound(profile)) append(to, "  beyond its bound");
  if (has_bound && profile.value("vacuous") > 0)
    append(to, "  {} vacuous", profile.value("vacuous"));
  if (shows_plan) append(to, "  {}", to_string(row.the_case.plan));
  append(to, "\n");
}

/// Appends how the errors of one table are distributed and signed, below it: beside it they would
/// not fit into a terminal.
void append_distributions(std::string& to, std::span<const ErrorsRow> rows, std::size_t width) {
  if (std::ranges::all_of(rows, [](const ErrorsRow& row) { return row.outputs.empty(); })) return;
  append(to, "\n{:<{}} {:<4} {:<4} {:<3} {:>41} {:>7} {:>7}\n", "", width, "", "", "",
         "ulp from the correctly rounded result, %  ", "bias,", "outward");
  append(to, "{:<{}} {:<4} {:<4} {:<3} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7} {:>7}\n", "kernel",
         width, "on", "type", "of", "0", "1", "2", "3-4", "5-8", "more", "t", "bias, t");
  for (const ErrorsRow& row : rows) {
    for (const auto& [label, errors] : row.outputs) {
      append_names(to, row, label, width);
      for (const UlpShare& share : ulp_shares()) {
        append(to, " {:>6.2f}", 100 * errors.value(share.name));
      }
      append(to, " {:>7.1f} {:>7.1f}\n", errors.value("bias"), errors.value("outward_bias"));
    }
  }
}

/// True if rows of one name, problem and inputs differ in their Plans.
bool has_several_plans(const std::vector<ErrorsRow>& rows) {
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].name == rows[i - 1].name && rows[i].kernel != nullptr &&
        rows[i].the_case.problem == rows[i - 1].the_case.problem &&
        rows[i].the_case.inputs == rows[i - 1].the_case.inputs &&
        rows[i].the_case.layouts == rows[i - 1].the_case.layouts &&
        rows[i].key_order == rows[i - 1].key_order) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool is_beyond_bound(const ErrorProfile& profile) {
  if (!profile.has("error_over_bound_max")) return false;
  const bool has_bounds = profile.value("vacuous") < profile.value("elements");
  return has_bounds && !(profile.value("error_over_bound_max") <= 1);  // NaN is beyond
}

bool is_beyond_bound(const ErrorsRow& row) {
  return std::ranges::any_of(
      row.outputs, [](const OutputErrors& output) { return is_beyond_bound(output.errors); });
}

std::vector<Record> records_of(const ErrorsRow& row, const std::string& device) {
  std::vector<Record> records;
  for (const auto& [label, errors] : row.outputs) add_records(row, label, errors, records);
  for (Record& record : records) record.provenance = current_provenance(device);
  return records;
}

void measure(ErrorsRow& row, Device& device, std::uint64_t seed, const ErrorDetail& detail) {
  device.seed_schedule(seed);
  const ErrorStudy study = study_errors(*row.kernel, row.the_case, row.sets, device,
                                        {.key_order = row.key_order,
                                         .detail = detail,
                                         .truth = row.truth,
                                         .smooths_keys = row.smooths_keys});
  row.outputs = study.outputs;
  row.certified_rows = study.certified_rows;
}

std::string errors_table(const std::vector<ErrorsRow>& rows) {
  std::string to;
  const auto same_table = [](const ErrorsRow& a, const ErrorsRow& b) {
    Problem problem = a.the_case.problem;
    problem.element_type = b.the_case.problem.element_type;
    return problem == b.the_case.problem && a.the_case.inputs == b.the_case.inputs &&
           a.smooths_keys == b.smooths_keys && a.the_case.layouts == b.the_case.layouts &&
           a.key_order == b.key_order;
  };
  const bool shows_plan = has_several_plans(rows);
  std::size_t width = 6;
  for (const ErrorsRow& row : rows) width = std::max(width, row.name.size());
  for (auto first = rows.begin(); first != rows.end();) {
    const auto last = std::find_if_not(
        first, rows.end(), [&](const ErrorsRow& row) { return same_table(*first, row); });
    append_heading(to, *first, width);
    for (const ErrorsRow& row : std::span(first, last)) {
      if (row.outputs.empty()) {
        append(to, "{:<{}} {:<4} {:<4} left out: {}\n", row.name, width, row.executor,
               format_of(row.the_case.problem.element_type).name, row.left_out);
      }
      for (const auto& [label, errors] : row.outputs) {
        append_line(to, row, label, errors, width, shows_plan);
      }
    }
    append_distributions(to, std::span(first, last), width);
    first = last;
  }
  return to;
}

}  // namespace attest
