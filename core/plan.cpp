#include "core/plan.hpp"

#include <fmt/format.h>

namespace attest {

std::string to_string(const Plan& plan) {
  std::string text;
  for (const PlanField& field : plan_fields) {
    if (plan.*field.member == 0) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", field.short_name, plan.*field.member);
  }
  return text.empty() ? "-" : text;
}

}  // namespace attest
