#include "core/base/seccomp_filter.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace attest {
namespace {

constexpr std::uint32_t allow = SECCOMP_RET_ALLOW;
constexpr std::uint32_t answer_eperm = SECCOMP_RET_ERRNO | EPERM;
constexpr std::uint32_t is_absent = SECCOMP_RET_ERRNO | ENOSYS;

/// Of other processes, of the machine, or of what a process cannot be watched through.
constexpr std::array refused{
    // Other processes.
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_pidfd_open,
    SYS_pidfd_getfd, SYS_pidfd_send_signal, SYS_process_madvise, SYS_process_mrelease, SYS_tkill,
    SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_migrate_pages, SYS_move_pages, SYS_setpgid,
    SYS_setsid, SYS_userfaultfd,
    // Networks, and memory and queues that have names.
    SYS_socket, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_io_uring_setup,
    SYS_io_uring_enter, SYS_io_uring_register, SYS_shmget, SYS_shmat, SYS_shmctl, SYS_semget,
    SYS_semop, SYS_semtimedop, SYS_semctl, SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl,
    SYS_mq_open, SYS_mq_unlink,
    // Counters, programs in the kernel, keys.
    SYS_perf_event_open, SYS_bpf, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_init_module,
    SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load,
    // The tree of files, and what Landlock does not rule in it.
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_move_mount, SYS_open_tree, SYS_fsopen,
    SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr, SYS_name_to_handle_at,
    SYS_open_by_handle_at, SYS_quotactl, SYS_swapon, SYS_swapoff, SYS_acct, SYS_chmod, SYS_fchmod,
    SYS_fchmodat, SYS_chown, SYS_fchown, SYS_lchown, SYS_fchownat, SYS_utime, SYS_utimes,
    SYS_futimesat, SYS_utimensat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr,
    SYS_lremovexattr, SYS_fremovexattr,
    // Name spaces, clocks, the machine.
    SYS_unshare, SYS_setns, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime,
    SYS_sethostname, SYS_setdomainname, SYS_iopl, SYS_ioperm, SYS_reboot, SYS_vhangup, SYS_syslog};

/// Calls about a process that an argument names: about another one they are refused.
struct AboutProcess {
  long call;
  std::uint32_t argument;
};
constexpr std::array about_a_process{
    AboutProcess{SYS_kill, 0},           AboutProcess{SYS_tgkill, 0},
    AboutProcess{SYS_prlimit64, 0},      AboutProcess{SYS_sched_setaffinity, 0},
    AboutProcess{SYS_sched_setparam, 0}, AboutProcess{SYS_sched_setscheduler, 0},
    AboutProcess{SYS_sched_setattr, 0},  AboutProcess{SYS_setpriority, 1},
    AboutProcess{SYS_ioprio_set, 1}};

constexpr std::uint32_t new_name_spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                          CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                          CLONE_NEWNET;
constexpr std::uint32_t first_x32_call = 0x40000000;  // the same calls under other numbers
/// fchmodat2. What Linux learns after this list was written is not there in a box.
constexpr std::uint32_t first_unknown_call = 452;

/// A program for the filter.
class Filter {
 public:
  void load(std::uint32_t offset) { add(BPF_LD | BPF_W | BPF_ABS, offset); }
  void load_argument(std::uint32_t index) {
    load(static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + 8 * index);  // its lower half
  }
  void ends(std::uint32_t what) { add(BPF_RET | BPF_K, what); }
  /// Jumps over so many instructions where `kind` (BPF_JEQ, BPF_JGE, BPF_JSET) holds, or not.
  void where(std::uint16_t kind, std::uint32_t value, std::uint8_t over) {
    add(static_cast<std::uint16_t>(BPF_JMP | kind | BPF_K), value, over, 0);
  }
  void unless(std::uint16_t kind, std::uint32_t value, std::uint8_t over) {
    add(static_cast<std::uint16_t>(BPF_JMP | kind | BPF_K), value, 0, over);
  }
  void if_call(long call, std::uint32_t what) {
    unless(BPF_JEQ, static_cast<std::uint32_t>(call), 1);
    ends(what);
  }
  [[nodiscard]] sock_fprog program() { return {.len = size_, .filter = code_.data()}; }

 private:
  void add(std::uint16_t code, std::uint32_t k, std::uint8_t yes = 0, std::uint8_t no = 0) {
    code_[size_++] = {.code = code, .jt = yes, .jf = no, .k = k};
  }

  std::array<sock_filter, 320> code_{};
  std::uint16_t size_ = 0;
};

}  // namespace

bool has_seccomp() {
  const std::uint32_t action = SECCOMP_RET_ERRNO;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

bool filter_system_calls(bool starts_processes) noexcept {
  if (!has_seccomp()) return true;
  Filter filter;
  filter.load(offsetof(seccomp_data, arch));
  filter.where(BPF_JEQ, AUDIT_ARCH_X86_64, 1);
  filter.ends(answer_eperm);
  filter.load(offsetof(seccomp_data, nr));
  filter.unless(BPF_JGE, first_x32_call, 1);
  filter.ends(answer_eperm);
  filter.unless(BPF_JGE, first_unknown_call, 1);
  filter.ends(is_absent);
  for (const long call : refused) filter.if_call(call, answer_eperm);
  // What clone3 asks for lies in memory, where no filter sees it; glibc falls back to clone.
  filter.if_call(SYS_clone3, is_absent);
  if (!starts_processes) {
    filter.if_call(SYS_fork, answer_eperm);
    filter.if_call(SYS_vfork, answer_eperm);
  }
  filter.unless(BPF_JEQ, SYS_clone, starts_processes ? 4 : 6);
  filter.load_argument(0);
  filter.unless(BPF_JSET, new_name_spaces, 1);
  filter.ends(answer_eperm);
  if (!starts_processes) {
    filter.unless(BPF_JSET, CLONE_THREAD, 1);
    filter.ends(allow);
  }
  filter.ends(starts_processes ? allow : answer_eperm);
  // Its parent's death ends it.
  filter.unless(BPF_JEQ, SYS_prctl, 4);
  filter.load_argument(0);
  filter.unless(BPF_JEQ, PR_SET_PDEATHSIG, 1);
  filter.ends(answer_eperm);
  filter.ends(allow);
  const auto self = static_cast<std::uint32_t>(getpid());
  for (const AboutProcess& one : about_a_process) {
    filter.unless(BPF_JEQ, static_cast<std::uint32_t>(one.call), 6);
    filter.load_argument(one.argument);
    filter.unless(BPF_JEQ, 0, 1);
    filter.ends(allow);
    filter.unless(BPF_JEQ, self, 1);
    filter.ends(allow);
    filter.ends(answer_eperm);
  }
  filter.ends(allow);
  const sock_fprog program = filter.program();
  // Without the flag Linux before 5.16 turns off speculation, and what is timed would be slower.
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) ==
         0;
}

}  // namespace attest
