#include "experiments/explain/access_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace attest {
namespace {

std::string_view file_of(std::string_view line) {
  return line.substr(line.rfind('/') + 1);
}

AccessLine line_of(const AccessSite& site) {
  const bool is_inlined = !site.called_from.empty();
  return {.line = is_inlined
                      ? fmt::format("{} ({})", file_of(site.kernel_line()), file_of(site.line))
                      : std::string(file_of(site.line)),
          .kind = site.kind,
          .access_bytes = site.access_bytes,
          .memory = site.memory,
          .space = site.space,
          .counts = site.counts,
          .worst_ways = site.worst_ways,
          .range = site.range};
}

bool belong_together(const AccessLine& a, const AccessLine& b) {
  return a.line == b.line && a.kind == b.kind && a.access_bytes == b.access_bytes &&
         a.memory == b.memory && a.range.begin < b.range.end && b.range.begin < a.range.end;
}

}  // namespace

std::string_view name_of(AccessKind kind) {
  return kind == AccessKind::read ? "read" : kind == AccessKind::write ? "write" : "atomic";
}

std::vector<AccessLine> access_lines(const KernelTrace& trace) {
  std::vector<AccessLine> lines;
  for (const AccessSite& site : trace.sites) {
    AccessLine line = line_of(site);
    const auto same = std::ranges::find_if(
        lines, [&](const AccessLine& other) { return belong_together(line, other); });
    if (same == lines.end()) {
      lines.push_back(std::move(line));
    } else {
      same->counts += line.counts;
      same->range = {std::min(same->range.begin, line.range.begin),
                     std::max(same->range.end, line.range.end)};
      same->worst_ways = std::max(same->worst_ways, line.worst_ways);
    }
  }
  for (AccessLine& line : lines) {
    if (line.space == MemorySpace::shared) {
      line.memory = fmt::format("shared {}-{}", line.range.begin, line.range.end);
    }
  }
  std::ranges::stable_sort(lines, std::greater{}, [](const AccessLine& line) {
    return line.counts.passes + line.counts.sectors;
  });
  return lines;
}

SharedPasses shared_passes(const ProblemCounters& counters) {
  SharedPasses passes;
  for (const KernelTrace& trace : counters.kernels) {
    for (const AccessSite& site : trace.sites) {
      const auto written = static_cast<double>(site.counts.passes);
      passes.as_written += written;
      passes.merged += written * std::min(1.0, site.access_bytes / 16.0);
    }
  }
  return passes;
}

}  // namespace attest
