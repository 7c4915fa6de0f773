#include "core/base/python_worker.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "core/base/error.hpp"

namespace attest {
namespace {

using std::chrono::milliseconds;

/// Answers every request as it is told to: needs no PyTorch.
constexpr std::string_view obedient = R"(
import json, os, sys, time
print(json.dumps({"ready": True, "pid": os.getpid(), "arguments": sys.argv[1:]}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if "sleep" in request:
        time.sleep(request["sleep"])
    if "exit" in request:
        sys.stderr.write("an earlier line\nlast words\n")
        sys.stderr.flush()
        os._exit(request["exit"])
    if "raise" in request:
        raise ValueError("nobody caught this")
    print(request.get("say") or json.dumps(request.get("answer", {})), flush=True)
)";

PythonWorker::Limits limits(int answer_ms) {
  return {.start = milliseconds(60'000), .answer = milliseconds(answer_ms)};
}

PythonWorker worker(std::string_view script, int answer_ms = 60'000) {
  return PythonWorker("the worker", std::array{script}, limits(answer_ms));
}

/// Message of an exception of type Error that the action throws; a failure where there is none.
template <typename Error, typename Action>
std::string what_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& other) {
    ADD_FAILURE() << "another exception: " << other.what();
    return "";
  }
  ADD_FAILURE() << "no exception";
  return "";
}

bool is_running(pid_t pid) {
  return kill(pid, 0) == 0;
}

TEST(PythonWorker, answers_questions_in_turn) {
  PythonWorker python = worker(obedient);
  for (int i = 0; i < 3; ++i) {
    const Json answer = python.ask({{"answer", {{"number", i}}}});
    EXPECT_EQ(answer.at("number"), i);
  }
}

TEST(PythonWorker, knows_its_parent_and_the_other_scripts) {
  PythonWorker python("the worker", std::array{obedient, std::string_view("second = 2")},
                      limits(60'000));
  const Json arguments = python.greeting().at("arguments");
  ASSERT_EQ(arguments.size(), 2U);
  EXPECT_EQ(arguments[0], std::to_string(getpid()));
}

TEST(PythonWorker, carries_long_lines_whole) {
  PythonWorker python = worker(obedient);
  const std::string text(1'000'000, 'x');
  EXPECT_EQ(python.ask({{"answer", {{"text", text}}}}).at("text"), text);
}

TEST(PythonWorker, an_error_in_an_answer_is_the_kernels_and_the_worker_lives_on) {
  PythonWorker python = worker(obedient);
  const std::string what = what_of<KernelError>([&] {
    (void)python.ask({{"answer", {{"error", "RuntimeError: head_dim is odd"}}}});
  });
  EXPECT_EQ(what, "the worker: RuntimeError: head_dim is odd");
  EXPECT_TRUE(python.is_alive());
  EXPECT_EQ(python.ask({{"answer", {{"number", 1}}}}).at("number"), 1);
}

TEST(PythonWorker, a_fatal_error_is_the_machines_and_ends_the_worker) {
  PythonWorker python = worker(obedient);
  const Json lost{{"answer", {{"error", "CUDA error"}, {"fatal", true}}}};
  EXPECT_EQ(what_of<MachineError>([&] { (void)python.ask(lost); }), "the worker: CUDA error");
  EXPECT_FALSE(python.is_alive());
  EXPECT_EQ(what_of<MachineError>([&] { (void)python.ask(lost); }), "the worker is gone");
}

TEST(PythonWorker, one_that_dies_leaves_its_last_line) {
  PythonWorker exits = worker(obedient);
  EXPECT_EQ(what_of<MachineError>([&] {
              (void)exits.ask({{"exit", 3}});
            }),
            "the worker: it called exit(3) (last words)");
  PythonWorker raises = worker(obedient);
  EXPECT_EQ(what_of<MachineError>([&] {
              (void)raises.ask({{"raise", true}});
            }),
            "the worker: it called exit(1) (ValueError: nobody caught this)");
}

TEST(PythonWorker, one_that_dies_by_a_signal_says_which_and_what_it_was_at) {
  EXPECT_EQ(what_of<MachineError>([] {
              (void)worker(R"(
import json, os
print(json.dumps({"doing": "it counted"}), flush=True)
print(json.dumps({"doing": "it counted on"}), flush=True)
os.kill(os.getpid(), 11))");
            }),
            "the worker: it was killed by SIGSEGV while it counted on");
}

TEST(PythonWorker, one_that_does_not_answer_in_time_is_killed) {
  PythonWorker python = worker(obedient, 200);
  const pid_t pid = python.greeting().at("pid").get<pid_t>();
  EXPECT_EQ(what_of<MachineError>([&] {
              (void)python.ask({{"sleep", 600}});
            }),
            "the worker: no answer in 0.2 s");
  EXPECT_FALSE(is_running(pid));
}

TEST(PythonWorker, what_is_no_json_object_is_no_answer) {
  for (const auto& [said, why] : {std::pair("hello", "the worker: no JSON: hello"),
                                  std::pair("[1]", "the worker: an answer that is no object")}) {
    PythonWorker python = worker(obedient);
    EXPECT_EQ(what_of<MachineError>([&] { (void)python.ask({{"say", said}}); }), why);
  }
}

TEST(PythonWorker, one_that_cannot_start_says_why) {
  const auto start = [](std::string_view script) {
    return what_of<MachineError>([&] { (void)worker(script); });
  };
  EXPECT_EQ(start("import a_module_that_nobody_has"),
            "the worker: it called exit(1) (ModuleNotFoundError: No module named "
            "'a_module_that_nobody_has')");
  EXPECT_EQ(start(R"(print('{"error": "no GPU"}', flush=True))"), "the worker: no GPU");
}

TEST(PythonWorker, ends_when_it_is_destroyed) {
  pid_t pid = 0;
  {
    const PythonWorker python = worker(obedient);
    pid = python.greeting().at("pid").get<pid_t>();
    ASSERT_TRUE(is_running(pid));
  }
  EXPECT_FALSE(is_running(pid));
}

TEST(PythonWorkerDeathTest, a_python_that_is_not_there_is_named_with_the_variable_that_helps) {
  EXPECT_EXIT(
      {
        setenv("ATTEST_PYTHON", "/nowhere/python3", 1);
        std::fputs(what_of<MachineError>([] { (void)worker(obedient); }).c_str(), stderr);
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "/nowhere/python3.*ATTEST_PYTHON");
}

/// A parent that dies by a signal tells nobody: the worker must notice.
TEST(PythonWorkerDeathTest, ends_with_its_parent) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    PythonWorker python = worker(obedient);
    const pid_t pid = python.greeting().at("pid").get<pid_t>();
    (void)!write(ends[1], &pid, sizeof(pid));
    pause();
  }
  pid_t pid = 0;
  ASSERT_EQ(read(ends[0], &pid, sizeof(pid)), static_cast<ssize_t>(sizeof(pid)));
  kill(parent, SIGKILL);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  while (is_running(pid) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_FALSE(is_running(pid));
}

}  // namespace
}  // namespace attest
