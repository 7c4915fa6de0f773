#pragma once

namespace attest {

/// What a kernel offers beyond dense problems with at least one query. Windows are masks. Which
/// field of a Problem asks for which of them, its row of problem_fields() says.
struct Features {
  bool no_queries = false;  ///< query_len 0
  bool value_dim = false;   ///< V and O narrower or wider than Q and K
  bool softcap = false;
  bool lengths = false;  ///< entries of the batch with lengths of their own, 0 included, packed
  bool padding = false;  ///< hidden keys
};

}  // namespace attest
