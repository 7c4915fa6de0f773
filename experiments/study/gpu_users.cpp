#include "experiments/study/gpu_users.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace attest {
namespace {

/// Of the whole file. Locks of open files, not of processes: they end with the file.
struct flock whole(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

GpuUsers::GpuUsers(const std::string& gpu, const std::filesystem::path& folder) {
  if (folder.empty()) return;
  std::string name = "attest_gpu_";
  for (const char c : gpu) {
    const bool is_plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_plain) name += c;
  }
  const std::string path = (folder / name.substr(0, 200)).string();
  file_ = ::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
  // Another user's file in a shared folder may be read, not made.
  if (file_ < 0) file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct flock lock = whole(F_RDLCK);
  if (file_ >= 0) (void)::fcntl(file_, F_OFD_SETLK, &lock);
}

GpuUsers::~GpuUsers() {
  if (file_ >= 0) ::close(file_);
}

bool GpuUsers::are_several() const {
  struct flock lock = whole(F_WRLCK);  // would somebody's stand in the way of one for us alone?
  return file_ >= 0 && ::fcntl(file_, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace attest
