#include "core/run/library_note.hpp"

#include <utility>

namespace attest {
namespace {

thread_local std::string last_note;

}  // namespace

void note_library(std::string_view note) {
  last_note = note;
}

std::string take_library_note() {
  return std::exchange(last_note, {});
}

}  // namespace attest
