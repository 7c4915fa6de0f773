#include "core/base/box.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/base/python_place.hpp"
#include "core/base/seccomp_filter.hpp"
#include "core/base/subprocess.hpp"
#include "core/base/temporary_folder.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// Says `EPERM` or the like of an expression that fails, else what it gives.
constexpr const char* prelude = R"(
import ctypes, errno, os, resource, signal, socket, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "")
    return "done"
def tried(what):
    try:
        return str(what())
    except OSError as error:
        return errno.errorcode.get(error.errno, "?")
    except MemoryError:
        return "ENOMEM"
)";

class InABox : public testing::Test {
 protected:
  /// What a Python expression gives in a box.
  [[nodiscard]] std::string of(const std::string& expression, bool starts_processes = true) const {
    BoxRules rules{.readable = python_place().folders,
                   .scratch = scratch_.path().string(),
                   .starts_processes = starts_processes,
                   .memory_bytes = std::uint64_t{1} << 32};
    const std::string& python = python_place().program;
    Subprocess child(
        {.program = python,
         .arguments = {python, "-c",
                       fmt::format("{}\nprint(tried(lambda: {}))", prelude, expression)},
         .channel_there = {STDIN_FILENO, STDOUT_FILENO},
         .box = std::make_shared<const Box>(std::move(rules))});
    std::optional<std::string> line;
    while (!(line = child.take_line()) && child.receive()) {
    }
    return line.value_or("nothing");
  }

  TemporaryFolder scratch_, outside_;
};

TEST_F(InABox, AProcessComputesStartsThreadsAndWritesToItsScratchFolder) {
  EXPECT_EQ(of("sum(range(5))"), "10");
  EXPECT_EQ(of("[threading.Thread(target=int).start(), 'ran'][1]", false), "ran");
  EXPECT_EQ(of("open('a', 'w').write('four')"), "4");
  EXPECT_TRUE(fs::exists(scratch_ / "a"));
  EXPECT_EQ(of("open('/dev/null', 'w').write('x')"), "1");
  EXPECT_EQ(of("subprocess.run(['sh', '-c', 'exit 7']).returncode"), "7");
  EXPECT_EQ(of("os.kill(os.getpid(), 0)"), "None");
}

TEST_F(InABox, NoOtherFileIsWrittenOrSeen) {
  if (landlock_version() == 0) GTEST_SKIP() << box_here();
  const std::string secret = (outside_ / "secret").string();
  std::ofstream(secret) << "seed";
  EXPECT_EQ(of(fmt::format("open('{}').read()", secret)), "EACCES");
  EXPECT_EQ(of(fmt::format("os.listdir('{}')", outside_.path().string())), "EACCES");
  for (const std::string how : {"open('{}', 'a')", "os.remove('{}')", "os.rename('{}', 'mine')",
                                "os.link('{}', 'mine')", "os.truncate('{}', 0)"}) {
    const std::string said = of(fmt::format(fmt::runtime(how), secret));
    EXPECT_TRUE(said == "EACCES" || said == "EXDEV") << how << " gave " << said;
  }
  EXPECT_EQ(of(fmt::format("os.mkdir('{}/new')", outside_.path().string())), "EACCES");
  EXPECT_EQ(of("open(os.__file__, 'a')"), "EACCES") << "what it reads it does not write";
  EXPECT_EQ(fs::file_size(secret), 4U);
}

TEST_F(InABox, OtherProcessesAreOutOfReach) {
  if (!has_seccomp()) GTEST_SKIP() << box_here();
  EXPECT_EQ(of("os.kill(os.getppid(), 0)"), "EPERM");
  EXPECT_EQ(of("os.kill(os.getppid(), signal.SIGKILL)"), "EPERM");
  EXPECT_EQ(of("call(101, 16, os.getppid(), 0, 0)"), "EPERM") << "ptrace";
  EXPECT_EQ(of("call(310, os.getppid(), 0, 0, 0, 0, 0)"), "EPERM") << "process_vm_readv";
  EXPECT_EQ(of("call(311, os.getppid(), 0, 0, 0, 0, 0)"), "EPERM") << "process_vm_writev";
  EXPECT_EQ(of("os.setsid()"), "EPERM") << "it stays in the group that is killed";
  EXPECT_EQ(of("resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))"), "EPERM");
  if (landlock_version() > 0) {
    EXPECT_EQ(of("open(f'/proc/{os.getppid()}/mem', 'rb')"), "EACCES");
    EXPECT_EQ(of("os.readlink(f'/proc/{os.getppid()}/fd/1')"), "EACCES");
    // As root, on Linux from 6.13 on, where CAP_PERFMON shows both.
    EXPECT_EQ(of("open(f'/proc/{os.getppid()}/environ', 'rb').read(1)"), "EACCES");
    EXPECT_EQ(of("open(f'/proc/{os.getppid()}/maps', 'rb').read(1)"), "EACCES");
  }
}

TEST_F(InABox, ThereAreNoSocketsCountersMountsOrKeys) {
  if (!has_seccomp()) GTEST_SKIP() << box_here();
  EXPECT_EQ(of("socket.socket()"), "EPERM");
  EXPECT_EQ(of("socket.socket(socket.AF_UNIX)"), "EPERM");
  EXPECT_EQ(of("call(425, 8, 0)"), "EPERM") << "io_uring, which opens sockets too";
  EXPECT_EQ(of("call(298, 0, 0, -1, -1, 0)"), "EPERM") << "perf_event_open";
  EXPECT_EQ(of("call(321, 0, 0, 0)"), "EPERM") << "bpf";
  EXPECT_EQ(of("call(165, 0, 0, 0, 0, 0)"), "EPERM") << "mount";
  EXPECT_EQ(of("call(250, 0, 0, 0, 0, 0)"), "EPERM") << "keyctl";
  EXPECT_EQ(of("call(272, 0x10000000)"), "EPERM") << "unshare of the user's name space";
  EXPECT_EQ(of("call(56, 0x10000011, 0, 0, 0, 0)"), "EPERM") << "clone into one";
  EXPECT_EQ(of("os.chmod('/dev/null', 0o666)"), "EPERM");
}

TEST_F(InABox, AFilterOfThreadsAloneStartsNoProcess) {
  if (!has_seccomp()) GTEST_SKIP() << box_here();
  EXPECT_EQ(of("os.fork()", false), "EPERM");
  EXPECT_EQ(of("subprocess.run(['true'])", false), "EPERM");
}

TEST_F(InABox, NothingOfTheParentIsInherited) {
  ASSERT_EQ(setenv("ATTEST_SECRET", "seed", 1), 0);
  const OwnedFd secret(open("/dev/zero", O_RDONLY));  // without O_CLOEXEC
  EXPECT_EQ(of("sorted(os.environ)"), "['HOME', 'LANG', 'PATH', 'TMPDIR']");
  EXPECT_EQ(of("os.environ['HOME'] == os.getcwd()"), "True");
  EXPECT_EQ(of("[fd for fd in range(3, 4096) if os.path.exists(f'/proc/self/fd/{fd}')]"), "[]");
}

TEST_F(InABox, FilesAndMemoryHaveAnEnd) {
  EXPECT_EQ(of("resource.getrlimit(resource.RLIMIT_FSIZE)[1] <= 2**30"), "True");
  EXPECT_EQ(of("resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] <= 2**16"), "True");
  EXPECT_EQ(of("len(bytearray(2**33))"), "ENOMEM") << "8 GiB of a limit of 4";
}

TEST_F(InABox, ItEndsWithWhoeverStartedIt) {
  pid_t inner = 0;
  {
    // The thread that starts it ends, which to Linux is its parent.
    std::optional<Subprocess> child;
    std::thread([&] {
      child.emplace(Subprocess::Start{
          .program = "sleep",
          .arguments = {"sleep", "1000"},
          .box = std::make_shared<const Box>(BoxRules{.scratch = scratch_.path().string()})});
    }).join();
    inner = child->pid();
    for (int i = 0; i < 5000 && !child->has_ended(); ++i) usleep(1000);
    EXPECT_TRUE(child->has_ended());
  }
  EXPECT_NE(kill(inner, 0), 0);
}

TEST_F(InABox, AProgramThatIsNotThereIsNamed) {
  try {
    const Subprocess child({.program = "no-such-program",
                            .arguments = {"x"},
                            .box = std::make_shared<const Box>(BoxRules{})});
    ADD_FAILURE() << "it started";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code().value(), ENOENT);
    EXPECT_NE(std::string(error.what()).find("no-such-program"), std::string::npos);
  }
}

TEST(BoxHere, SaysWhatItIsMadeOf) {
  const std::string said = box_here();
  EXPECT_EQ(said.find("landlock") == 0, landlock_version() > 0) << said;
  EXPECT_NE(said.find("seccomp"), std::string::npos) << said;
}

}  // namespace
}  // namespace attest
