#include "verify/judge/one_key.hpp"

#include "core/attention/layout_needs.hpp"

namespace attest {

Case with_one_key(const Run& run) {
  Case c = run.the_case();
  Problem& p = c.problem;
  p.key_len = 1;
  p.mask = Mask::none;
  p.window = {};
  p.scale = 1;
  p.softcap = 0;
  p.length_seed = p.padding_seed = 0;
  p.shared_keys = 0;
  c.layouts = fitted(run.kernel().layout_needs, p, {});
  return c;
}

}  // namespace attest
