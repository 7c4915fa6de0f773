#pragma once

#include <string>

#include "verify/property.hpp"
#include "verify/statistics.hpp"

namespace attest {

/// The law that a statistic stays at or below its threshold.
[[nodiscard]] Property statistic_law(Statistic statistic, std::string statement,
                                     std::string failure);

}  // namespace attest
