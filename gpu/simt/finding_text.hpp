#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/simt/simt_device.hpp"

namespace attest {

inline std::string text_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings) text += f.kind + ": " + f.message + "\n";
  return text;
}

/// The device has one finding, of this kind and with all of the parts in its text.
inline void expect_one(simt::SimtDevice& device, const std::string& kind,
                       const std::vector<std::string>& parts) {
  const std::vector<Finding> findings = device.take_findings();
  ASSERT_EQ(findings.size(), 1U) << text_of(findings);
  EXPECT_EQ(findings[0].kind, kind);
  for (const std::string& part : parts)
    EXPECT_NE(findings[0].message.find(part), std::string::npos)
        << findings[0].message << "\nlacks " << part;
}

}  // namespace attest
