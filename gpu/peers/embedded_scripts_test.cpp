#include "gpu/peers/embedded_scripts.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace attest {
namespace {

TEST(EmbeddedScripts, are_whole) {
  EXPECT_TRUE(torch_worker_script().starts_with("\"\"\""));
  EXPECT_TRUE(torch_worker_script().ends_with("main()\n"));
  EXPECT_TRUE(triton_flash_script().find("def forward(") != std::string_view::npos);
}

}  // namespace
}  // namespace attest
