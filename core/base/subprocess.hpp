#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

class Box;

/// A file descriptor that is closed in the end.
class OwnedFd {
 public:
  explicit OwnedFd(int fd = -1) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd() { reset(); }
  [[nodiscard]] int get() const { return fd_; }
  /// Closes the descriptor and takes another.
  void reset(int fd = -1);
  /// Gives the descriptor away.
  [[nodiscard]] int release();

 private:
  int fd_;
};

/// Sends all bytes through a socket; false if the other end is gone. Never raises SIGPIPE.
[[nodiscard]] bool send_all(int socket, std::string_view bytes);

/// For the environment of a process that runs kernels: glibc fills memory that malloc gives with
/// the complement of this byte, 0x7f, and freed memory with the byte: a kernel that reads what it
/// did not write finds 3.4e38, NaN in fp16, and not the zeros of fresh pages or what it wrote there
/// last time [mallopt(3), M_PERTURB].
inline constexpr const char* perturbed_memory = "MALLOC_PERTURB_=128";

/// End of a process in words, by its wait status: `was killed by SIGSEGV`, `called exit(3)`.
[[nodiscard]] std::string how_it_ended(int status);

/// A process that this one started, and a socket between the two on which lines travel. The child
/// is the leader of a process group: Ctrl-C on a terminal is not for it, and what it starts is
/// killed with it. Signals that this process catches or blocks are as usual in the child.
class Subprocess {
 public:
  /// A descriptor of this process, and which one it is in the child.
  struct Descriptor {
    int here = -1, there = -1;
  };
  struct Start {
    std::string program;                     ///< a path, or a name to be found on PATH
    std::vector<std::string> arguments;      ///< from argv[0] on
    std::vector<int> channel_there{0};       ///< the child's descriptors of the socket
    std::vector<Descriptor> descriptors{};   ///< others from 3 on are closed
    std::vector<std::string> environment{};  ///< `NAME=VALUE`, where this process has no NAME
    /// Box that the child runs in; null: as this process. Then its environment is the box's and the
    /// one above.
    std::shared_ptr<const Box> box{};
  };

  Subprocess() = default;
  /// Throws std::system_error that says which call failed.
  explicit Subprocess(const Start& start);
  Subprocess(Subprocess&& other) noexcept;
  Subprocess& operator=(Subprocess&& other) noexcept;
  ~Subprocess() { end(); }

  /// Nobody ended it yet; it may have ended by itself.
  [[nodiscard]] bool is_started() const { return pid_ > 0; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// This process's end of the socket, for poll().
  [[nodiscard]] int channel() const { return channel_.get(); }

  /// Sends the line and a newline; false if the child does not listen any more.
  [[nodiscard]] bool send_line(std::string_view line) const;
  /// Reads what has arrived, or waits for something; false at the end of the stream.
  [[nodiscard]] bool receive();
  /// The next line that was received as a whole, without its newline.
  [[nodiscard]] std::optional<std::string> take_line();
  /// Bytes that were received and not taken.
  [[nodiscard]] std::size_t unread_bytes() const { return unread_.size(); }

  /// True if the process has ended by itself. Nothing of its state is taken away.
  [[nodiscard]] bool has_ended() const;
  /// Its wait status, once it has ended by itself.
  [[nodiscard]] std::optional<int> status();
  /// Kills it and its group and waits for its end. What was received stays.
  void end() noexcept;

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
  OwnedFd channel_;
  std::string unread_;
};

}  // namespace attest
