#include "cli/errors_report.hpp"

#include <fmt/format.h>

#include <string_view>

#include "verify/compare.hpp"

namespace attest {
namespace {

std::string magnitude_of(const InputSpec& inputs) {
  return inputs.magnitude == 1 ? "" : fmt::format(":{:g}", inputs.magnitude);
}

Record record_of(const ErrorsRow& row, std::string_view tensor, const ErrorProfile& profile) {
  Record record;
  record.kind = "errors";
  record.subject = row.the_case;
  record.labels = {{"contender", row.contender},
                   {"executor", row.executor},
                   {"problem", to_string(row.the_case.problem)},
                   {"plan", to_string(row.the_case.plan)},
                   {"inputs", row.the_case.inputs.family + magnitude_of(row.the_case.inputs)},
                   {"element_type", std::string(format_of(row.the_case.problem.element_type).name)},
                   {"tensor", std::string(tensor)},
                   {"largest_error_at", to_string(profile.largest_at)}};
  if (!row.made_by.empty()) record.labels["outputs_made_by"] = row.made_by;
  record.measurements = {
      {"sets", static_cast<double>(row.sets), "1"},
      {"certified_reference_rows", static_cast<double>(row.certified_rows), "1"}};
  record.measurements.insert(record.measurements.end(), profile.measurements.begin(),
                             profile.measurements.end());
  record.measurements.push_back({"largest_error_got", profile.largest_got, "value"});
  record.measurements.push_back({"largest_error_want", profile.largest_want, "value"});
  return record;
}

void print_heading(const ErrorsRow& row) {
  Problem problem = row.the_case.problem;
  problem.element_type = ElementType::fp32;  // named by the rows
  std::string text = to_string(problem);
  text.erase(text.rfind(" fp32"), 5);
  fmt::print("\n{}, inputs {}{}, {} data set{}\n", text, row.the_case.inputs.family,
             magnitude_of(row.the_case.inputs), row.sets, row.sets == 1 ? "" : "s");
  fmt::print(
      "{:<20} {:<4} {:<4} {:<3} {:>9} {:>9} {:>9} {:<18} {:>41} {:>7} {:>7} {:>6} {:>6} {:>6}\n",
      "", "", "", "", "", "relative", "largest", "", "ulp from the correctly rounded result, %  ",
      "bias,", "outward", "error", "/ bound", "");
  fmt::print(
      "{:<20} {:<4} {:<4} {:<3} {:>9} {:>9} {:>9} {:<18} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7} "
      "{:>7} {:>6} {:>6} {:>6}\n",
      "kernel", "on", "type", "of", "RMSE", "L2", "error", "at", "0", "1", "2", "3-4", "5-8",
      "more", "t", "bias, t", "max", "p99", "median");
}

void print_line(const ErrorsRow& row, std::string_view tensor, const ErrorProfile& profile) {
  fmt::print("{:<20} {:<4} {:<4} {:<3} {:>9.3g} {:>9.3g} {:>9.3g} {:<18}", row.contender,
             row.executor, format_of(row.the_case.problem.element_type).name, tensor,
             profile.value("rmse"), profile.value("relative_l2"), profile.value("max_abs_error"),
             to_string(profile.largest_at));
  for (const UlpShare& share : ulp_shares())
    fmt::print(" {:>6.2f}", 100 * profile.value(share.name));
  fmt::print(" {:>7.1f} {:>7.1f}", profile.value("bias"), profile.value("outward_bias"));
  if (profile.has("error_over_bound_max")) {
    fmt::print(" {:>6.3f} {:>6.3f} {:>6.3f}", profile.value("error_over_bound_max"),
               profile.value("error_over_bound_p99"), profile.value("error_over_bound_median"));
    if (profile.value("vacuous") > 0) fmt::print("  {} vacuous", profile.value("vacuous"));
  }
  fmt::print("\n");
}

}  // namespace

std::vector<Record> records_of(const ErrorsRow& row, const std::string& device) {
  std::vector<Record> records{record_of(row, "O", *row.o)};
  if (row.lse) records.push_back(record_of(row, "LSE", *row.lse));
  for (Record& record : records) record.provenance = current_provenance(device);
  return records;
}

void print_errors(const std::vector<ErrorsRow>& rows) {
  const ErrorsRow* last = nullptr;
  const auto same_table = [](const ErrorsRow& a, const ErrorsRow& b) {
    Problem problem = a.the_case.problem;
    problem.element_type = b.the_case.problem.element_type;
    return problem == b.the_case.problem && a.the_case.inputs == b.the_case.inputs;
  };
  for (const ErrorsRow& row : rows) {
    if (last == nullptr || !same_table(*last, row)) print_heading(row);
    last = &row;
    if (!row.o) {
      fmt::print("{:<20} {:<4} {:<4} left out: {}\n", row.contender, row.executor,
                 format_of(row.the_case.problem.element_type).name, row.left_out);
      continue;
    }
    print_line(row, "O", *row.o);
    if (row.lse) print_line(row, "LSE", *row.lse);
  }
}

}  // namespace attest
