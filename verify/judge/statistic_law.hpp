#pragma once

#include <string>

#include "verify/judge/law.hpp"
#include "verify/judge/statistics.hpp"

namespace attest {

/// The law that a statistic stays at or below its threshold.
[[nodiscard]] Law statistic_law(Statistic statistic, std::string statement, std::string failure);

}  // namespace attest
