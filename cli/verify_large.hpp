#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "verify/campaign/large.hpp"

namespace attest {

/// `attest verify --large`: runs, prints the table, writes records and counterexamples below `out`.
[[nodiscard]] ExitCode verify_large(const std::vector<const KernelInfo*>& kernels,
                                    LargeOptions options, const std::filesystem::path& out,
                                    const std::string& inputs_file);

}  // namespace attest
