#pragma once

namespace attest {

/// True if this Linux filters system calls [seccomp(2), SECCOMP_GET_ACTION_AVAIL].
[[nodiscard]] bool has_seccomp();

/// Filters the system calls of the calling process, and of what it starts, from now on: it gets
/// EPERM where it asks to look into other processes or to signal them, for sockets, counters of
/// performance, BPF, mounts, keys, modules, name spaces, io_uring, other owners, modes or times of
/// files, and for another process group: it stays where whoever kills its group finds it.
/// `starts_processes`: false: threads only. False with errno; true without any effect where there
/// is no seccomp. Needs no_new_privs. Safe between fork and exec.
[[nodiscard]] bool filter_system_calls(bool starts_processes) noexcept;

}  // namespace attest
