#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace attest {

/// Claims on pieces of work, among processes of several machines that share a folder and nothing
/// else. A claim is a file that whoever creates it owns, empty, and touched every second as long as
/// its owner lives: one that was not for `dead_after` is up for grabs. That a slow owner is taken
/// for a dead one cannot be ruled out, so a piece of work may be done twice: its result must be the
/// same file with the same contents whoever writes it. Safe to share between threads.
class SharedClaims {
 public:
  static constexpr std::chrono::seconds dead_after{10};

  /// Makes the folder. Throws MachineError if it cannot be used.
  explicit SharedClaims(std::filesystem::path folder);
  SharedClaims(const SharedClaims&) = delete;
  SharedClaims& operator=(const SharedClaims&) = delete;
  /// Gives all claims back.
  ~SharedClaims();

  /// Takes a claim; true: `name`, part of a file's name, is this object's until it gives it back or
  /// dies. Whoever has it looks whether the work is done: its owner before may have finished it
  /// just now.
  [[nodiscard]] bool take(const std::string& name);
  void give_back(const std::string& name);
  /// True if a living process holds the claim.
  [[nodiscard]] bool is_held(const std::string& name);

 private:
  struct Held {
    std::filesystem::path path;
    int file;
  };

  /// The n-th owner's: those before it died.
  [[nodiscard]] std::filesystem::path path_of(const std::string& name, int owner) const;
  /// True if the file exists and was not touched for too long by the clock of the machine that
  /// keeps it.
  [[nodiscard]] bool is_dead(const std::filesystem::path& path) const;
  void touch_until(const std::stop_token& end);

  std::filesystem::path folder_;
  int clock_ = -1;  ///< a file that is touched to know what time it is where the folder lies
  std::mutex mutex_;
  std::map<std::string, Held> held_;
  std::condition_variable_any woken_;
  std::jthread heart_;  ///< last: ends before what it uses
};

}  // namespace attest
