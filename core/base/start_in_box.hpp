#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/box.hpp"
#include "core/base/subprocess.hpp"

namespace attest {

/// Starts a program, a path or a name to be found on PATH, that is in the box before its first
/// instruction, as the leader of a process group. It gets these descriptors alone, of which `here`
/// is no `there` of another. Throws std::system_error that names the call which failed.
[[nodiscard]] pid_t start_in_box(const Box& box, const std::string& program,
                                 const std::vector<std::string>& arguments,
                                 const std::vector<Subprocess::Descriptor>& descriptors,
                                 const std::vector<std::string>& environment);

}  // namespace attest
