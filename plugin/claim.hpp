#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/run/kernel.hpp"
#include "include/attest/plugin.h"
#include "plugin/plugin_functions.hpp"

namespace attest {

/// A kernel of a plugin after its descriptor was checked: what the callbacks of its KernelInfo
/// need.
struct PluginClaim {
  std::string name{};
  AttestKernel kernel{};                     ///< fields that the plugin's version lacks are 0
  AttestPrecision precision{};               ///< the same
  std::vector<Plan> plans{};                 ///< plans[i] is kernel.plans[i]
  std::vector<std::int64_t> head_dims{};     ///< empty: any
  std::vector<ElementType> partial_types{};  ///< of O_p; empty: any
  std::shared_ptr<PluginFunctions> functions{};
};

/// One plan of the descriptor. Throws InvalidInput; `where` names plugin, kernel and plan.
[[nodiscard]] Plan plan_of(const AttestPlan& plan, const std::string& where);

/// The roundings that a plugin declares, for one plan of one problem of the kernel's operation; 0
/// fields get the defaults that plugin.h names. Throws InvalidInput naming the field; `where` names
/// plugin and kernel.
[[nodiscard]] Roundings roundings_of(const AttestPrecision& precision, const Problem& problem,
                                     const Plan& plan, const std::string& where);

/// A struct that a plugin gave, as this version knows it: what the plugin's version lacks is 0.
/// Throws InvalidInput when its `size` does not hold what every plugin says, or it sets fields
/// unknown here.
[[nodiscard]] AttestPlugin checked_copy(const AttestPlugin& given, const std::string& where);
[[nodiscard]] AttestKernel checked_copy(const AttestKernel& given, const std::string& where);
[[nodiscard]] AttestPrecision checked_copy(const AttestPrecision& given, const std::string& where);

/// Completes a KernelInfo whose names, types, masks and needs are set: the functions that ask the
/// plugin.
void add_callbacks(KernelInfo& info, PluginClaim claim);

}  // namespace attest
