#include "core/base/slow_notice.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

namespace attest {
namespace {

struct File {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream{std::tmpfile(), std::fclose};
  [[nodiscard]] std::string text() const {
    std::rewind(stream.get());
    std::array<char, 100> bytes{};
    return {bytes.data(), std::fread(bytes.data(), 1, bytes.size(), stream.get())};
  }
};

TEST(SlowNotice, OfWhatIsOverInTimeNothingIsSaid) {
  const File file;
  { const SlowNotice notice("waiting", 3600, file.stream.get()); }
  EXPECT_EQ(file.text(), "");
}

TEST(SlowNotice, WhatTakesLongIsNamedOnce) {
  const File file;
  {
    const SlowNotice notice("waiting", 0, file.stream.get());
    while (file.text().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(file.text(), "waiting\n");
}

}  // namespace
}  // namespace attest
