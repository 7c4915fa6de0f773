#include "verify/workers/worker_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include "core/base/error.hpp"
#include "verify/workers/processor_time.hpp"
#include "verify/workers/worker.hpp"
#include "verify/workers/worker_protocol.hpp"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t kept_words = 4096;  // bytes of a worker's stderr
// An answer is a few kilobytes; a kernel that writes into the channel must not fill our memory.
constexpr std::size_t longest_line = std::size_t{1} << 26;
// How often memory, deadline and Ctrl-C are looked at while a worker is silent.
constexpr auto look_every = std::chrono::milliseconds(50);
// Loading means reading the captured activations and the plugins.
constexpr double start_seconds = 120;

[[noreturn]] void fail(std::string_view what, int error) {
  throw MachineError(fmt::format("cannot start a worker process: {}: {}", what, strerror(error)));
}

/// Linux says of the process that it is not on its way out. A process that ends is marked so before
/// its files are closed [proc(5), flags of stat; PF_EXITING]. Where the system has no flags, false.
bool lives_on(pid_t process) {
  constexpr std::uint64_t exiting = 0x4;
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text, word;
  std::getline(file, text);
  std::istringstream words(text.substr(std::min(text.size(), text.rfind(')'))));
  // The name's end, state, parent, group, session, terminal, its group.
  for (int i = 0; i < 7; ++i) words >> word;
  std::uint64_t flags = 0;
  return words >> flags && flags != 0 && (flags & exiting) == 0;
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkerSetup& setup) {
  try {
    spawn(false);
    load(setup);
  } catch (...) {
    clean_up();  // no destructor runs for what was not made
    throw;
  }
}

std::unique_ptr<WorkerProcess> WorkerProcess::ahead() {
  std::unique_ptr<WorkerProcess> worker(new WorkerProcess);
  worker->spawn(true);
  return worker;
}

void WorkerProcess::load(const WorkerSetup& setup) {
  const WorkerReply reply = ask(encode(setup), {.seconds = start_seconds}, {});
  if (reply.kind != WorkerReply::Kind::answered) {
    throw MachineError("a worker process ended before its first case: it " + reply.text);
  }
  if (const auto error = error_from_line(reply.text)) rethrow(*error);
}

WorkerProcess::~WorkerProcess() {
  clean_up();
}

void WorkerProcess::clean_up() {
  if (process_.is_started()) (void)bury(WorkerReply::Kind::interrupted, "");
  if (note_ != nullptr) munmap(note_, sizeof(ActivityNote));
}

void WorkerProcess::spawn(bool is_ahead) {
  std::array<int, 2> errors{};
  if (pipe2(errors.data(), O_CLOEXEC) != 0) fail("pipe2", errno);
  errors_.reset(errors[0]);
  const OwnedFd its_errors(errors[1]);
  // The worker may not be able to write while we do not read; we never wait for its stderr.
  (void)fcntl(errors_.get(), F_SETFL, O_NONBLOCK);
  const OwnedFd note(memfd_create("attest worker note", MFD_CLOEXEC));
  if (note.get() < 0 || ftruncate(note.get(), sizeof(ActivityNote)) != 0) {
    fail("memfd_create", errno);
  }
  void* page =
      mmap(nullptr, sizeof(ActivityNote), PROT_READ | PROT_WRITE, MAP_SHARED, note.get(), 0);
  if (page == MAP_FAILED) fail("mmap", errno);
  note_ = static_cast<ActivityNote*>(page);

  std::vector<std::string> arguments{"attest", std::string(worker_argument)};
  if (is_ahead) arguments.emplace_back(worker_ahead_flag);
  try {
    process_ = Subprocess({.program = "/proc/self/exe",
                           .arguments = std::move(arguments),
                           .channel_there = {worker_channel_fd},
                           .descriptors = {{its_errors.get(), STDOUT_FILENO},
                                           {its_errors.get(), STDERR_FILENO},
                                           {note.get(), worker_note_fd}},
                           .environment = {perturbed_memory}});
  } catch (const std::system_error& error) {
    throw MachineError(fmt::format("cannot start a worker process: {}", error.what()));
  }
}

WorkerReply WorkerProcess::ask(std::string_view question, const WorkerLimits& limits,
                               const std::function<bool()>& is_interrupted) {
  read_all_errors();
  words_.clear();
  ++question_;
  // Failing to send means that it died since its last answer; waiting finds out how.
  (void)process_.send_line(
      sealed({.question = question_, .process = getpid(), .text = std::string(question)}));
  return wait_for_answer(limits, is_interrupted);
}

WorkerReply WorkerProcess::reply_of(std::string_view line) {
  const auto no_answer = [this](const char* what) { return bury(WorkerReply::Kind::died, what); };
  std::optional<Letter> letter = opened(line);
  if (!letter) return no_answer("wrote something else than an answer to its parent");
  if (letter->process != process_.pid()) {
    return no_answer("did not answer, but another process did: the kernel forked");
  }
  if (letter->question != question_) return no_answer("answered a question that it was not asked");
  if (process_.unread_bytes() > 0) return no_answer("wrote more than its answer to its parent");
  read_all_errors();
  return {.text = std::move(letter->text), .last_words = last_words()};
}

WorkerReply WorkerProcess::wait_for_answer(const WorkerLimits& limits,
                                           const std::function<bool()>& is_interrupted) {
  // On a busy machine a correct kernel takes long; what counts is how long it could have run.
  const auto start = Clock::now();
  const ProcessorTime before = processor_time(process_.pid());
  bool has_errors = true, is_late = false, is_gone = false;
  while (true) {
    if (const auto line = process_.take_line()) return reply_of(*line);
    if (process_.unread_bytes() > longest_line) {
      return bury(WorkerReply::Kind::died, "wrote something else than an answer to its parent");
    }
    if (is_interrupted && is_interrupted()) return bury(WorkerReply::Kind::interrupted, "");
    if (is_late) {  // and there was nothing to read since
      return bury(WorkerReply::Kind::timed_out,
                  fmt::format("gave no answer within {:g} s", limits.seconds));
    }
    const auto now = Clock::now();
    if (limits.memory_bytes > 0 && now - memory_checked_ > look_every) {
      memory_checked_ = now;
      if (const std::uint64_t bytes = resident_bytes(); bytes > limits.memory_bytes) {
        return bury(WorkerReply::Kind::died,
                    fmt::format("held {:.3g} GiB of memory, more than the limit of {:.3g} GiB",
                                static_cast<double>(bytes) / (1 << 30),
                                static_cast<double>(limits.memory_bytes) / (1 << 30)));
      }
    }
    std::array<pollfd, 2> waits{{{.fd = process_.channel(), .events = POLLIN, .revents = 0},
                                 {.fd = errors_.get(), .events = POLLIN, .revents = 0}}};
    const Seconds left =
        Seconds(limits.seconds) - used(before, processor_time(process_.pid()), now - start);
    is_late = !(left > Seconds(0));
    const auto pause =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::min<Seconds>(left, look_every));
    (void)poll(waits.data(), has_errors ? 2 : 1, is_late ? 0 : static_cast<int>(pause.count()) + 1);
    if (has_errors && waits[1].revents != 0) has_errors = read_errors();
    if (waits[0].revents != 0) {
      if (!process_.receive()) return bury(WorkerReply::Kind::died, "");
    } else if (is_gone) {  // and a process that its kernel started holds the channel open
      return bury(WorkerReply::Kind::died, "");
    } else {
      is_gone = process_.has_ended();  // what it sent before is read first
    }
  }
}

bool WorkerProcess::read_errors() {
  std::array<char, 4096> buffer{};
  const ssize_t size = read(errors_.get(), buffer.data(), buffer.size());
  if (size < 0) return errno == EINTR || errno == EAGAIN;
  words_.append(buffer.data(), static_cast<std::size_t>(size));
  if (words_.size() > kept_words) words_.erase(0, words_.size() - kept_words);
  return size > 0;
}

WorkerReply WorkerProcess::bury(WorkerReply::Kind kind, std::string why) {
  if (kind == WorkerReply::Kind::died && why.empty()) {
    // Its end of the channel is closed: it is dead or dying, unless the kernel closed it.
    std::optional<int> status;
    for (int i = 0; i < 200 && !status && !lives_on(process_.pid()); ++i) {
      status = process_.status();
      if (!status) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    why = status ? how_it_ended(*status) : "closed the channel to its parent";
  }
  process_.end();
  read_all_errors();
  return {.kind = kind, .text = why + last_words()};
}

void WorkerProcess::read_all_errors() {
  // A process that a kernel moved out of the group may hold the pipe open, or fill it for ever:
  // never wait for its end.
  for (int i = 0; i < 1000; ++i) {
    pollfd wait{.fd = errors_.get(), .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, 0) <= 0 || !read_errors()) break;
  }
}

std::string WorkerProcess::last_words() const {
  std::string words = words_;
  while (!words.empty() && words.back() == '\n') words.pop_back();
  // The last three lines, as one.
  std::size_t begin = words.size();
  for (int lines = 0; lines < 3 && begin != std::string::npos; ++lines) {
    begin = begin == 0 ? std::string::npos : words.rfind('\n', begin - 1);
  }
  if (begin != std::string::npos && begin < words.size()) words.erase(0, begin + 1);
  std::ranges::replace(words, '\n', '|');
  std::erase_if(words, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  return words.empty() ? "" : fmt::format("; its last words: {}", words);
}

std::uint64_t WorkerProcess::resident_bytes() const {
  std::vector<pid_t> processes = children_of(process_.pid());  // where its kernel may be
  processes.push_back(process_.pid());
  std::uint64_t pages = 0;
  for (const pid_t process : processes) {
    std::ifstream file(fmt::format("/proc/{}/statm", process));
    std::uint64_t size = 0, resident = 0, shared = 0;
    // What a worker and its kernel's process share is the worker's.
    if (file >> size >> resident >> shared) {
      pages += process == process_.pid() ? resident : resident - std::min(shared, resident);
    }
  }
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

Phase WorkerProcess::phase() const {
  const int phase = note_->phase;
  const bool is_known = phase >= 0 && phase < static_cast<int>(phase_names.size());
  return is_known ? static_cast<Phase>(phase) : Phase::launch;
}

Question WorkerProcess::question() const {
  const int question = note_->question;
  const bool is_known = question >= 0 && question < static_cast<int>(question_texts.size());
  return is_known ? static_cast<Question>(question) : Question::can_run;
}

std::string WorkerProcess::law() const {
  std::string law(note_->law.data(), strnlen(note_->law.data(), note_->law.size()));
  std::erase_if(
      law, [](char c) { return c != '_' && std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return law;
}

std::string WorkerProcess::fault() const {
  std::string fault(note_->fault.data(), strnlen(note_->fault.data(), note_->fault.size()));
  std::erase_if(fault, [](char c) { return std::isprint(static_cast<unsigned char>(c)) == 0; });
  return fault;
}

}  // namespace attest
