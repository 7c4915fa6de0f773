#include "core/run/asked_paging.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"

namespace attest {

Paging asked_paging(std::string_view option, const std::string& text) {
  if (text == "contiguous") return {};
  try {
    return paging_from_string(text);
  } catch (const InvalidInput& error) {
    throw InvalidInput(fmt::format("{}: {}; or contiguous", option, error.what()));
  }
}

Paging default_paging(const KernelInfo& kernel) {
  constexpr std::int64_t usual_page = 16;  // of serving systems
  const LayoutNeeds& needs = kernel.layout_needs;
  if (needs.pages != Pages::always) return {};
  const auto& sizes = needs.page_sizes;
  const bool takes_usual = sizes.empty() || std::ranges::find(sizes, usual_page) != sizes.end();
  return {.page_size = takes_usual ? usual_page : sizes.front(),
          .table = needs.tables.value_or(TableForm::dense)};
}

}  // namespace attest
