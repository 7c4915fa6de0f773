#include "verify/workers/worker_protocol.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/subprocess.hpp"
#include "core/records/case_json.hpp"

namespace attest {
namespace {

/// Bytes that are not UTF-8 (an error text of a kernel) must not throw.
std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class Enum>
Json enum_json(Enum value) {
  return static_cast<int>(value);
}

template <class Enum>
Enum enum_from(const Json& json, int count) {
  const int value = json.get<int>();
  if (value < 0 || value >= count) throw std::runtime_error("an enum out of range");
  return static_cast<Enum>(value);
}

Json laws_json(const LawSelection& laws) {
  Json layers = Json::array();
  for (const Layer layer : laws.layers) layers.push_back(enum_json(layer));
  return {{"glob", laws.glob},
          {"layers", layers},
          {"every_law", laws.every_law},
          {"asks_misreadings", laws.asks_misreadings}};
}

LawSelection laws_from(const Json& json) {
  LawSelection laws{.glob = json.at("glob"),
                    .layers = {},
                    .every_law = json.at("every_law"),
                    .asks_misreadings = json.at("asks_misreadings")};
  for (const Json& layer : json.at("layers")) laws.layers.insert(enum_from<Layer>(layer, 3));
  return laws;
}

Json check_json(const Check& check) {
  const WorstElement& worst = check.worst;
  return {{"status", enum_json(check.status)},
          {"detail", check.detail},
          {"has_element", check.has_element},
          {"tensor", check.tensor},
          {"index", worst.index},
          {"got", number_json(worst.got)},
          {"want", number_json(worst.want)},
          {"bound", number_json(worst.bound)},
          {"ratio", number_json(worst.ratio)}};
}

Check check_from(const Json& json) {
  Check check;
  check.status = enum_from<Check::Status>(json.at("status"), 4);
  check.detail = json.at("detail");
  check.has_element = json.at("has_element");
  check.tensor = json.at("tensor");
  check.worst = {.index = json.at("index").get<Shape>(),
                 .got = number_from_json(json.at("got")),
                 .want = number_from_json(json.at("want")),
                 .bound = number_from_json(json.at("bound")),
                 .ratio = number_from_json(json.at("ratio"))};
  return check;
}

/// The number at the start of the text and the space after it are taken away.
template <typename Number>
std::optional<Number> take_number(std::string_view& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data() + text.size() || *end != ' ') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

}  // namespace

Json worst_json(const WorstOverBound& worst) {
  Json json = Json::object();
  for (const auto& [output, ratio] : worst) json[output] = number_json(ratio);
  return json;
}

WorstOverBound worst_from_json(const Json& json) {
  WorstOverBound worst;
  for (const auto& [output, ratio] : json.items()) worst.raise(output, number_from_json(ratio));
  return worst;
}

Json failure_json(const Failure& failure) {
  return {{"law", failure.law},
          {"kind", enum_json(failure.kind)},
          {"repetition", failure.repetition},
          {"shrinking", failure.shrinking},
          {"misreadings", failure.misreadings},
          {"case", case_json(failure.the_case)},
          {"check", check_json(failure.check)}};
}

Failure failure_from_json(const Json& json) {
  return {.law = json.at("law"),
          .the_case = case_from(json.at("case"), "a failure"),
          .check = check_from(json.at("check")),
          .kind = enum_from<Verdict>(json.at("kind"), 6),
          .repetition = json.at("repetition"),
          .shrinking = json.at("shrinking"),
          .misreadings = json.at("misreadings").get<std::vector<std::string>>()};
}

std::string encode(const WorkerSetup& setup) {
  return line_of({{"plugins", setup.plugins}, {"inputs_file", setup.inputs_file}});
}

WorkerSetup setup_from_line(std::string_view line) {
  const Json json = parse_json(line);
  return {.plugins = json.at("plugins").get<std::vector<std::string>>(),
          .inputs_file = json.at("inputs_file")};
}

std::string encode(const CaseTask& task) {
  Json json = {{"executor", enum_json(task.executor)},
               {"case", case_json(task.the_case)},
               {"laws", laws_json(task.laws)},
               {"judges", enum_json(task.judges)}};
  if (task.certify) json["certify"] = *task.certify;
  return line_of(json);
}

CaseTask task_from_line(std::string_view line) {
  const Json json = parse_json(line);
  CaseTask task{.executor = enum_from<Executor>(json.at("executor"), 3),
                .the_case = case_from(json.at("case"), "a task"),
                .laws = laws_from(json.at("laws")),
                .judges = enum_from<Judges>(json.at("judges"), 3)};
  if (json.contains("certify")) task.certify = json.at("certify").get<std::uint64_t>();
  return task;
}

std::string encode(const CaseAnswer& answer) {
  const CaseVerdict& verdict = answer.verdict;
  Json seconds = Json::array();
  for (const double time : answer.seconds) seconds.push_back(time);
  Json json = {{"verdict", enum_json(verdict.verdict)},
               {"checked_laws", verdict.checked_laws},
               {"worst", worst_json(verdict.worst_over_bound)},
               {"reason", verdict.reason},
               {"declined", verdict.declined},
               {"certified_rows", answer.certificate.rows},
               {"certified", number_json(answer.certificate.worst_ratio)},
               {"seconds", seconds},
               {"library", answer.library}};
  if (verdict.failure) json["failure"] = failure_json(*verdict.failure);
  if (answer.judgement) {
    json["rejected"] = answer.judgement->rejected;
    json["rejecting_laws"] = answer.judgement->laws;
  }
  return line_of(json);
}

CaseAnswer answer_from_line(std::string_view line) {
  const Json json = parse_json(line);
  CaseAnswer answer;
  CaseVerdict& verdict = answer.verdict;
  verdict.verdict = enum_from<Verdict>(json.at("verdict"), 6);
  verdict.checked_laws = json.at("checked_laws").get<std::vector<std::string>>();
  verdict.worst_over_bound = worst_from_json(json.at("worst"));
  verdict.reason = json.at("reason");
  verdict.declined = json.at("declined").get<std::vector<std::string>>();
  if (json.contains("failure")) verdict.failure = failure_from_json(json.at("failure"));
  answer.certificate = {.rows = json.at("certified_rows"),
                        .worst_ratio = number_from_json(json.at("certified"))};
  answer.seconds = json.at("seconds").get<PhaseTimes>();
  answer.library = json.at("library");
  if (json.contains("rejected")) {
    answer.judgement = Judgement{.rejected = json.at("rejected").get<std::vector<bool>>(),
                                 .laws = json.at("rejecting_laws").get<std::vector<std::string>>()};
  }
  return answer;
}

std::string encode(const WorkerError& error) {
  return line_of({{"error", error.text}, {"kind", enum_json(error.kind)}});
}

std::optional<WorkerError> error_from_line(std::string_view line) {
  if (!line.starts_with("{\"error\":")) return std::nullopt;
  const Json json = parse_json(line);
  return WorkerError{.kind = enum_from<WorkerError::Kind>(json.at("kind"), 4),
                     .text = json.at("error")};
}

void rethrow(const WorkerError& error) {
  switch (error.kind) {
    case WorkerError::Kind::machine:
      throw MachineError(error.text);
    case WorkerError::Kind::input:
      throw InvalidInput(error.text);
    case WorkerError::Kind::kernel:
      throw KernelError(error.text);
    case WorkerError::Kind::internal:
      throw std::logic_error(error.text);
  }
}

std::string sealed(const Letter& letter) {
  return fmt::format("{} {} {}", letter.question, letter.process, letter.text);
}

std::optional<Letter> opened(std::string_view line) {
  const auto question = take_number<std::uint64_t>(line);
  const auto process = question ? take_number<pid_t>(line) : std::nullopt;
  if (!process) return std::nullopt;
  return Letter{.question = *question, .process = *process, .text = std::string(line)};
}

LineChannel::LineChannel(int fd) : fd_(fd), process_(getpid()) {}

std::optional<std::string> LineChannel::receive() {
  std::array<char, 4096> buffer{};
  while (true) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::optional<Letter> letter = opened(std::string_view(unread_).substr(0, end));
      unread_.erase(0, end + 1);
      if (!letter) return std::nullopt;
      question_ = letter->question;
      return std::move(letter->text);
    }
    const ssize_t size = recv(fd_, buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return std::nullopt;
    unread_.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

void LineChannel::send(std::string text) {
  if (getpid() != process_) _exit(0);
  (void)send_all(
      fd_, sealed({.question = question_, .process = process_, .text = std::move(text)}) + '\n');
}

}  // namespace attest
