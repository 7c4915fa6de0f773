#include "core/base/json_worker.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

constexpr int first_file = 3;  // of the child's descriptors
constexpr std::size_t longest_last_words = 300;
constexpr std::size_t longest_answer = std::size_t{1} << 24;  // bytes
/// Its channel ends a moment before it does.
constexpr std::chrono::seconds longest_end{5};
constexpr std::chrono::milliseconds between_looks{2};

/// Bytes of a process that may write anything, fit for a message and for JSON.
std::string harmless(std::string_view bytes) {
  std::string text = printable(bytes, longest_last_words);
  if (!is_utf8(text)) {
    std::ranges::replace_if(
        text, [](unsigned char c) { return c >= 0x80; }, '?');
  }
  return text;
}

}  // namespace

OwnedFd memory_file(std::string_view content) {
  OwnedFd fd(memfd_create("attest", MFD_CLOEXEC));
  std::size_t written = 0;
  while (fd.get() >= 0 && written < content.size()) {
    const ssize_t count = write(fd.get(), content.data() + written, content.size() - written);
    if (count < 0 && errno != EINTR) break;
    written += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  if (fd.get() < 0 || written < content.size()) {
    throw MachineError(fmt::format("no file in memory for a worker: {}", strerror(errno)));
  }
  return fd;
}

std::string JsonWorker::path_there(std::size_t number) {
  return fmt::format("/proc/self/fd/{}", first_file + static_cast<int>(number));
}

JsonWorker::JsonWorker(Start start)
    : name_(std::move(start.name)),
      limits_(start.limits),
      is_trusted_(start.box == nullptr),
      errors_(memory_file("")) {
  Subprocess::Start child{.program = std::move(start.program),
                          .arguments = std::move(start.arguments),
                          .channel_there = {STDIN_FILENO, STDOUT_FILENO},
                          .descriptors = {{errors_.get(), STDERR_FILENO}},
                          .environment = std::move(start.environment),
                          .box = std::move(start.box)};
  for (std::size_t i = 0; i < start.files.size(); ++i) {
    child.descriptors.push_back({start.files[i], first_file + static_cast<int>(i)});
  }
  try {
    process_ = Subprocess(child);
  } catch (const std::system_error& error) {
    throw MachineError(
        fmt::format("{} cannot be started: {}{}", name_, error.what(), start.advice));
  }
  try {
    greeting_ = receive(limits_.start);
  } catch (const KernelError& error) {  // it works on no problem yet
    throw WorkerFault(error.what());
  }
}

Json JsonWorker::ask(const Json& request) {
  if (!is_alive()) throw MachineError(fmt::format("{} is gone", name_));
  doing_.clear();
  if (has_more()) throw WorkerFault(bury("it said more than it was asked"));
  if (!process_.send_line(request.dump())) throw WorkerFault(bury(how_it_died()));
  return receive(limits_.answer);
}

bool JsonWorker::has_more() {
  pollfd waiting{.fd = process_.channel(), .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, 0) > 0 && !process_.receive()) {
    throw WorkerFault(bury(how_it_died()));
  }
  return process_.unread_bytes() > 0;
}

Json JsonWorker::receive(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    const Json answer = parsed(line_before(deadline, limit));
    if (!answer.contains("doing")) return checked(answer);
    doing_ = answer["doing"].is_string() ? harmless(answer["doing"].get<std::string>()) : "";
  }
}

std::string JsonWorker::line_before(std::chrono::steady_clock::time_point deadline,
                                    std::chrono::milliseconds limit) {
  while (true) {
    if (std::optional<std::string> line = process_.take_line()) return *line;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd waiting{.fd = process_.channel(), .events = POLLIN, .revents = 0};
    const int ready = left.count() > 0 ? poll(&waiting, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      throw WorkerFault(
          bury(fmt::format("no answer in {:.3g} s", std::chrono::duration<double>(limit).count())));
    }
    if (!process_.receive()) throw WorkerFault(bury(how_it_died()));
    if (process_.unread_bytes() > longest_answer) throw WorkerFault(bury("an endless answer"));
  }
}

Json JsonWorker::parsed(const std::string& line) {
  if (!is_json(line)) {
    throw WorkerFault(bury(fmt::format("no JSON: {}", harmless(line.substr(0, 80)))));
  }
  Json answer = parse_json(line);
  if (!answer.is_object()) throw WorkerFault(bury("an answer that is no object"));
  return answer;
}

Json JsonWorker::checked(const Json& answer) {
  if (!answer.contains("error")) return answer;
  const std::string error =
      answer["error"].is_string() ? answer["error"].get<std::string>() : answer["error"].dump();
  if (is_trusted_ && answer.value("fatal", false)) throw WorkerFault(bury(error));
  const std::string sentence = fmt::format("{}: {}", name_, is_trusted_ ? error : harmless(error));
  if (is_trusted_ && answer.value("machine", false)) throw MachineError(sentence);
  throw KernelError(sentence);
}

std::string JsonWorker::how_it_died() {
  const auto deadline = std::chrono::steady_clock::now() + longest_end;
  std::optional<int> status = process_.status();
  while (!status && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(between_looks);
    status = process_.status();
  }
  return "it " + (status ? how_it_ended(*status) : "closed its end of the channel");
}

std::string JsonWorker::bury(const std::string& why) {
  std::string words;
  if (errors_.get() >= 0) {
    const off_t size = lseek(errors_.get(), 0, SEEK_END);
    words.resize(std::min(longest_last_words, static_cast<std::size_t>(std::max<off_t>(size, 0))));
    const ssize_t count =
        pread(errors_.get(), words.data(), words.size(), size - static_cast<off_t>(words.size()));
    words.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  process_.end();
  // The last line of a traceback is the error itself.
  while (!words.empty() && words.back() == '\n') words.pop_back();
  if (const std::size_t last = words.rfind('\n'); last != std::string::npos)
    words.erase(0, last + 1);
  return fmt::format("{}: {}{}{}", name_, why, doing_.empty() ? "" : " while " + doing_,
                     words.empty() ? "" : fmt::format(" ({})", harmless(words)));
}

}  // namespace attest
