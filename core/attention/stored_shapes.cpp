#include "core/attention/stored_shapes.hpp"

#include "core/run/index_arrays.hpp"

namespace attest {

StoredShapes stored_shapes(const Problem& problem) {
  StoredShapes shapes{query_shape(problem), key_shape(problem), value_shape(problem),
                      output_shape(problem), lse_shape(problem)};
  if (problem.length_seed == 0) return shapes;
  const auto queries = query_starts(problem), keys = key_starts(problem);
  return {packed_shape(shapes.q, queries), packed_shape(shapes.k, keys),
          packed_shape(shapes.v, keys), packed_shape(shapes.o, queries),
          packed_shape(shapes.lse, queries)};
}

}  // namespace attest
