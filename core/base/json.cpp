#include "core/base/json.hpp"

namespace attest {

Json parse_json(std::string_view text) {
  return Json::parse(text);
}

bool is_json(std::string_view text) {
  return Json::accept(text);
}

}  // namespace attest
