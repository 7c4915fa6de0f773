#pragma once

namespace attest {

/// Can this Linux filter system calls?
[[nodiscard]] bool has_seccomp();

/// From now on the calling process, and what it starts, gets EPERM where it asks to look into other
/// processes or to signal them, for sockets, counters of performance, BPF, mounts, keys, modules,
/// name spaces, io_uring, other owners, modes or times of files, and for another process group: it
/// stays where whoever kills its group finds it. `starts_processes`: false: threads only. False
/// with errno. Needs no_new_privs. Safe between fork and exec.
[[nodiscard]] bool filter_system_calls(bool starts_processes) noexcept;

}  // namespace attest
