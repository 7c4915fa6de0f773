#pragma once

#include <filesystem>
#include <string_view>

namespace attest {

/// Puts `text` in the place of the file in one step: whoever reads it, after a crash too, finds the
/// old text or the new one, never a part. Makes the folder. Throws MachineError with path and
/// reason.
void write_whole_file(const std::filesystem::path& path, std::string_view text);

}  // namespace attest
