#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/run/kernel.hpp"
#include "include/attest/plugin.h"
#include "plugin/plugin_functions.hpp"

namespace attest {

/// The functions of the kernel with this number in the descriptor, of which a checked copy is
/// given.
using FunctionsOf =
    std::function<std::shared_ptr<PluginFunctions>(std::size_t number, const AttestKernel& kernel)>;

/// Reads a plugin's descriptor, believes nothing of it, and makes a kernel of each entry. What the
/// descriptor points to must outlive the kernels. `where` is the plugin's path, for messages and
/// KernelInfo::plugin. Throws InvalidInput with one line: which kernel, which field, what it holds
/// and what is allowed. Pointers that point nowhere cannot be recognised here: probe.hpp does that.
[[nodiscard]] std::vector<KernelInfo> kernels_of(const AttestPlugin* plugin,
                                                 const std::string& where,
                                                 const FunctionsOf& functions_of);
/// Kernels of a plugin that is loaded in this process, read as above; throws as above.
[[nodiscard]] std::vector<KernelInfo> kernels_of(const AttestPlugin* plugin,
                                                 const std::string& where);

}  // namespace attest
