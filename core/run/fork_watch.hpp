#pragma once

#include <sys/types.h>

namespace attest {

/// Watches a call of foreign code for a `fork` whose child comes back from the call as well: two
/// processes would then go on, and answer for each other. Make one before the call, ask it after;
/// whichever way the child leaves the call, it ends there.
class ForkWatch {
 public:
  ForkWatch();
  ForkWatch(const ForkWatch&) = delete;
  ForkWatch& operator=(const ForkWatch&) = delete;
  /// Ends the process at once if it is a child, without destructors and exit handlers, after its
  /// parent was told.
  ~ForkWatch();
  /// True if a child came back. After a `fork` waits a little for the child to do so.
  [[nodiscard]] bool child_came_back() const;

 private:
  pid_t process_;
  int forks_;
};

}  // namespace attest
