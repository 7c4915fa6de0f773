#pragma once

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// Launches over the output tiles of a.problem in the order of a.plan. a.o: ints
/// [batch * query_heads, query tiles], to which the block that makes a tile adds 1, after its
/// threads have exchanged values through shared memory as a kernel would; a value that comes from
/// another tile adds 1,000. a.workspace: tile_counter_bytes().
void launch_count_tiles(const ForwardArguments& a, Device& device);

}  // namespace attest
