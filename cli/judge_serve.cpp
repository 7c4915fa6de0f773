#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/judge.hpp"
#include "cli/output.hpp"
#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/subprocess.hpp"
#include "core/base/temporary_folder.hpp"
#include "core/base/text.hpp"
#include "plugin/judged_subject.hpp"

namespace attest {
namespace {

constexpr std::size_t longest_request = 1 << 16;  // bytes
constexpr std::size_t longest_complaint = 4096;   // bytes
constexpr int look_every_ms = 200;                // whether it was interrupted
constexpr std::chrono::seconds longest_tidying{10};
/// Keys that a request may have besides `solution`: options of `attest judge` without their dashes.
constexpr std::array known_keys{"task",  "format",  "seed", "seed-file", "for",
                                "cases", "timeout", "jobs", "runs",      "out"};

Json complaint(const std::string& what) {
  return {{"error", what}};
}

/// The arguments of `attest judge` that a request stands for. Throws InvalidInput.
std::vector<std::string> arguments_of(const std::string& line) {
  if (!is_json(line)) throw InvalidInput("a request is no JSON; allowed: an object on one line");
  const Json request = parse_json(line);
  if (!request.is_object() || !request.contains("solution") || !request["solution"].is_string()) {
    throw InvalidInput(
        "a request names no 'solution'; allowed: FILE.py, FILE.py:NAME, FILE.so or FILE.so:KERNEL");
  }
  std::vector<std::string> arguments{"attest", "judge", "--json", "-"};
  for (const auto& [key, value] : request.items()) {
    if (key == "solution") continue;
    if (std::ranges::find(known_keys, key) == known_keys.end()) {
      throw InvalidInput(fmt::format("a request has '{}'; allowed: solution, {}", printable(key),
                                     fmt::join(known_keys, ", ")));
    }
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    arguments.push_back(fmt::format("--{}={}", key, text));
  }
  arguments.insert(arguments.end(), {"--", request["solution"].get<std::string>()});
  return arguments;
}

/// The last line of a file in memory, without the program's name.
std::string last_line_of(int file) {
  std::string text(longest_complaint, '\0');
  const ssize_t size = pread(file, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  while (text.ends_with('\n')) text.pop_back();
  text.erase(0, text.rfind('\n') + 1);
  if (text.starts_with("attest: ")) text.erase(0, 8);
  return text;
}

/// A judge that is started before anybody asks for it, and judges once.
class JudgeAhead {
 public:
  /// What it makes ready is what such a solution needs; it judges others, too.
  explicit JudgeAhead(bool is_for_plugins)
      : errors_(memfd_create("attest", MFD_CLOEXEC)),
        process_({.program = "/proc/self/exe",
                  .arguments = {"attest", "judge", "--ahead",
                                is_for_plugins ? "--format=plugin" : "--format=numpy"},
                  .channel_there = {STDIN_FILENO, STDOUT_FILENO},
                  .descriptors = {{errors_.get(), STDERR_FILENO}}}) {}
  JudgeAhead(const JudgeAhead&) = delete;
  JudgeAhead& operator=(const JudgeAhead&) = delete;
  /// Without a request it tidies up and ends by itself.
  ~JudgeAhead() {
    if (is_asked_ && was_interrupted()) return;  // nobody waits for its verdict
    (void)shutdown(process_.channel(), SHUT_WR);
    const auto end = std::chrono::steady_clock::now() + longest_tidying;
    while (!process_.has_ended() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  /// False: it died while it waited.
  [[nodiscard]] bool is_asked(const std::vector<std::string>& arguments) {
    is_asked_ = true;
    return process_.send_line(Json(arguments).dump());
  }
  /// The verdict, or a complaint.
  [[nodiscard]] std::string answer() {
    std::optional<std::string> verdict;
    while (!was_interrupted() && !(verdict = process_.take_line()) && process_.receive()) {
    }
    return verdict ? *verdict : complaint(last_line_of(errors_.get())).dump();
  }

 private:
  OwnedFd errors_;
  Subprocess process_;
  bool is_asked_ = false;
};

/// Answers requests, each by a judge of its own: what one solution leaves in it no other finds.
class JudgeService {
 public:
  std::string answer_to(const std::string& line) {
    try {
      const std::vector<std::string> arguments = arguments_of(line);
      are_plugins_ = is_shared_object(arguments.back());  // and so may the next be
      if (next_->is_asked(arguments)) return answer_by(std::move(next_));
      next_ = std::make_unique<JudgeAhead>(are_plugins_);
      if (next_->is_asked(arguments)) return answer_by(std::move(next_));
      return complaint("a judge ends before it is asked").dump();
    } catch (const std::exception& error) {
      return complaint(error.what()).dump();
    }
  }

 private:
  std::string answer_by(std::unique_ptr<JudgeAhead> judge) {
    // It starts beside the first cases of this one, and has long done so when runs are timed.
    next_ = std::make_unique<JudgeAhead>(are_plugins_);
    return judge->answer();
  }

  bool are_plugins_ = false;
  std::unique_ptr<JudgeAhead> next_ = std::make_unique<JudgeAhead>(are_plugins_);
};

/// Answers a client's lines until it hangs up.
void answer_all_of(int client, JudgeService& judges) {
  std::string unread;
  while (!was_interrupted()) {
    if (const std::size_t end = unread.find('\n'); end != std::string::npos) {
      const std::string line = unread.substr(0, end);
      unread.erase(0, end + 1);
      if (!send_all(client, judges.answer_to(line) + '\n')) return;
      continue;
    }
    pollfd waiting{.fd = client, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, look_every_ms) <= 0) continue;
    std::array<char, 4096> buffer{};
    const ssize_t size = recv(client, buffer.data(), buffer.size(), 0);
    if (size <= 0 || unread.size() > longest_request) return;
    unread.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

}  // namespace

ExitCode serve_judge(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof(address.sun_path)) {
    throw InvalidInput(fmt::format("--serve '{}' is too long; allowed: {} bytes", printable(path),
                                   sizeof(address.sun_path) - 1));
  }
  std::ranges::copy(path, std::begin(address.sun_path));
  const OwnedFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const mode_t before = umask(0177);  // its owner alone may ask
  const bool is_bound =
      bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  const int error = errno;
  umask(before);
  if (!is_bound) {
    throw InvalidInput(fmt::format("--serve '{}': {}; allowed: a path where nothing is",
                                   printable(path, 4096), strerror(error)));
  }
  catch_interrupts();
  (void)listen(listener.get(), 64);
  fmt::print(stderr, "attest: judging what is asked for at {}; Ctrl-C ends it\n", path);
  const SharedTemporaryFolder folder;  // what a judge leaves that was killed goes with it
  JudgeService judges;
  while (!was_interrupted()) {
    pollfd waiting{.fd = listener.get(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, look_every_ms) <= 0) continue;
    const OwnedFd client(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client.get() >= 0) answer_all_of(client.get(), judges);
  }
  (void)unlink(path.c_str());
  return ExitCode::interrupted;
}

}  // namespace attest
