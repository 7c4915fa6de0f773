#include "experiments/study/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/counted.hpp"
#include "experiments/study/language/evaluate.hpp"
#include "experiments/study/language/study_names.hpp"

namespace attest {
namespace {

/// With the interval NAME_low to NAME_high where the record has one.
Value measured(const Record& record, std::string_view name) {
  const Measurement* middle = find_measurement(record.measurements, name);
  if (middle == nullptr) return Value::missing(std::string(name));
  const Measurement* low = find_measurement(record.measurements, fmt::format("{}_low", name));
  const Measurement* high = find_measurement(record.measurements, fmt::format("{}_high", name));
  double from = low == nullptr ? middle->value : low->value;
  double to = high == nullptr ? middle->value : high->value;
  if ((name == "rate" || name == "bandwidth") && low == nullptr) {
    // Work or bytes over time: as uncertain as the time.
    const Value time = measured(record, "time");
    if (time.kind == Value::Kind::number) {
      from = middle->value * time.mid / time.high;
      to = middle->value * time.mid / time.low;
    }
  }
  return Value::interval(from, middle->value, to, name);
}

std::string label(const Record& record, const std::string& name) {
  const auto found = record.labels.find(name);
  return found == record.labels.end() ? "" : found->second;
}

Row row_of(const Record& record) {
  Row row;
  const auto executor = executor_from_name(label(record, "executor"));
  row.value = [&record, executor](std::string_view name) {
    Value value = measured(record, name);
    if (value.kind != Value::Kind::missing) return value;
    return identity_value(name, executor.value_or(Executor::cpu), *record.subject);
  };
  constexpr std::string_view prefix = "axis.";
  for (const auto& [name, text] : record.labels) {
    if (name.starts_with(prefix)) row.axes[name.substr(prefix.size())] = text;
  }
  row.axes["kernel"] = record.subject->kernel;
  return row;
}

/// What is missing, and why where that is known.
std::string missing_text(const Value& missing, const std::vector<Row>& rows) {
  constexpr std::array timed{"time",        "rate",     "bandwidth", "rounds",
                             "speed_over_", "sm_clock", "power",     "temperature"};
  const bool is_timed = std::ranges::any_of(
      rows, [](const Row& row) { return row.value("time").kind == Value::Kind::number; });
  const bool needs_time = std::ranges::any_of(
      timed, [&](const char* begin) { return missing.text.starts_with(begin); });
  return to_string(missing) +
         (needs_time && !is_timed && !rows.empty() ? ", as nothing was timed" : "");
}

/// Both sides of the comparison that an expectation is; of others the whole.
std::string found_text(const Expression& e, const std::vector<Row>& rows, double tolerance) {
  const Value whole = evaluate(e, rows, tolerance);
  if (whole.kind == Value::Kind::missing) return to_string(whole);
  if (e.kind == Expression::Kind::binary && (e.word == "and" || e.word == "or")) {
    std::string text;
    for (const Expression& side : e.operands) {
      // What is not known did not decide.
      if (evaluate(side, rows, tolerance).kind == Value::Kind::missing) continue;
      text += fmt::format("{}{}", text.empty() ? "" : fmt::format(" {} ", e.word),
                          found_text(side, rows, tolerance));
    }
    return text;
  }
  if (e.kind == Expression::Kind::binary) {
    const std::string slack =
        tolerance > 0 ? fmt::format(", tolerance {} %", format_number(100 * tolerance)) : "";
    return fmt::format("{}{} {} {}{}", to_string(evaluate(e.operands[0], rows, tolerance)),
                       whole.is_surely_false() ? ", not" : "", e.word,
                       to_string(evaluate(e.operands[1], rows, tolerance)), slack);
  }
  if (e.kind == Expression::Kind::call && (e.word == "all" || e.word == "any")) {
    const auto count = [&](const Expression* condition) {
      Expression points{.kind = Expression::Kind::call, .word = "count", .where = e.where};
      if (condition != nullptr && e.where.empty()) points.where = {*condition};
      if (condition != nullptr && !e.where.empty()) {
        points.where = {{.kind = Expression::Kind::binary,
                         .word = "and",
                         .operands = {e.where[0], *condition}}};
      }
      return static_cast<std::size_t>(evaluate(points, rows, tolerance).mid);
    };
    const Expression& asked = e.operands[0];
    const Expression otherwise{.kind = Expression::Kind::unary, .word = "not", .operands = {asked}};
    const std::size_t points = count(nullptr), yes = count(&asked), no = count(&otherwise);
    const std::string unknown =
        yes + no < points ? fmt::format("; {} more not measured", points - yes - no) : "";
    return fmt::format("{} of {}{}", yes, counted(yes + no, "point"), unknown);
  }
  return to_string(whole);
}

Record answer_record(const StudySpec& spec, const Expectation& expectation,
                     const StudyAnswer& found) {
  return {.kind = "study_answer",
          .labels = {{"study", spec.name},
                     {"that", expectation.that.text},
                     {"because", expectation.because},
                     {"claim", expectation.claim},
                     {"answer", std::string(name_of(found.kind))},
                     {"found", found.sentence}}};
}

}  // namespace

std::string_view name_of(StudyAnswer::Kind kind) {
  switch (kind) {
    case StudyAnswer::Kind::holds:
      return "holds";
    case StudyAnswer::Kind::refuted:
      return "refuted";
    case StudyAnswer::Kind::undecided:
      return "undecided";
    case StudyAnswer::Kind::no_results:
      break;
  }
  return "no_results";
}

StudyAnswer answer(const Expectation& expectation, const std::vector<Record>& records) {
  std::vector<Row> rows;
  for (const Record& record : records) {
    const bool is_point = record.kind == "study" && record.verdict == "passed" && record.subject &&
                          label(record, "role") == "point";
    if (is_point) rows.push_back(row_of(record));
  }
  const Expression& that = *expectation.that.expression;
  const Value value = evaluate(that, rows, expectation.tolerance);
  if (value.kind == Value::Kind::missing) {
    return {.kind = StudyAnswer::Kind::no_results, .sentence = missing_text(value, rows)};
  }
  const StudyAnswer::Kind kind = value.is_surely_true()    ? StudyAnswer::Kind::holds
                                 : value.is_surely_false() ? StudyAnswer::Kind::refuted
                                                           : StudyAnswer::Kind::undecided;
  return {.kind = kind, .sentence = found_text(that, rows, expectation.tolerance)};
}

std::vector<Record> answer_records(const StudySpec& spec, const std::vector<Record>& records) {
  std::vector<Record> answers;
  for (const Expectation& expectation : spec.expect) {
    answers.push_back(answer_record(spec, expectation, answer(expectation, records)));
  }
  return answers;
}

std::vector<Record> undecided_records(const StudySpec& spec, const std::string& why) {
  std::vector<Record> answers;
  for (const Expectation& expectation : spec.expect) {
    answers.push_back(
        answer_record(spec, expectation, {.kind = StudyAnswer::Kind::undecided, .sentence = why}));
  }
  return answers;
}

}  // namespace attest
