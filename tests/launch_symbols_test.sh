#!/usr/bin/env bash
# A kernel's source is compiled twice, for the GPU and for the executor. An inline function that launches or makes what a launch
# takes, defined by both under one name, is one symbol to the linker, which keeps either: kernels would then be launched in the wrong
# place, or with maps of the other. So such functions carry their executor in their name: a template argument of type Executor, or the
# namespace on_gpu or on_simt. What is inlined everywhere has no symbol, until a change makes it longer.
# Arguments: folders with the objects of kernels.
set -euo pipefail
seen=0
for folder; do
  names=$(find "$folder" -name '*.o' -exec nm -C --defined-only {} + |
    sed -nE 's/^[0-9a-f]+ [WV] (.*attest::[a-z0-9_:]*((launch|resident|start_)[a-z0-9_]*|maps?|parameters)[(<].*)$/\1/p' | grep -vE '^[^(]*std::|\(anonymous' || true)
  [ -z "$names" ] || seen=1
  nameless=$(grep -vE '\(attest::Executor\)|on_gpu::|on_simt::' <<<"$names" | sort -u | grep . || true)
  [ -z "$nameless" ] || { printf '%s: no executor in the name of\n%s\n' "$folder" "$nameless"; exit 1; }
done
[ "$seen" = 1 ] || { echo "no function that launches in $*"; exit 1; }
echo "what launches names its executor"
