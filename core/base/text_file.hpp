#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace attest {
/// Content of a file that a user named: a regular file, or a pipe that this process was given
/// (`/dev/stdin`, `<(command)`), which ends. A device may not, and a pipe with a name may have no
/// writer. Throws InvalidInput with the path and the reason, also for more than `most_bytes`.
[[nodiscard]] std::string read_text_file(const std::filesystem::path& path, std::size_t most_bytes);

/// Puts `text` in the place of the file in one step: whoever reads it, after a crash too, finds the
/// old text or the new one, never a part. Makes the folder. Throws MachineError with path and
/// reason.
void write_whole_file(const std::filesystem::path& path, std::string_view text);

}  // namespace attest
