#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attest {

/// Ending of a test case of JUnit.
struct JunitEnding {
  std::string_view tag{};  ///< `failure`, `error` or `skipped`; empty: it passed
  std::string type{};
  std::string message{};
  std::string text{};
};

struct JunitCase {
  std::string name;
  JunitEnding ending;
};

struct JunitSuite {
  std::string name;
  double seconds = 0;
  std::vector<std::pair<std::string, std::string>> properties;
  std::vector<JunitCase> cases;
};

/// Writes suites as CI systems read them; `name` is that of all together. Bytes that XML has not
/// become `?`. Throws MachineError with path and reason.
void write_junit_file(const std::string& path, std::string_view name,
                      const std::vector<JunitSuite>& suites);

}  // namespace attest
