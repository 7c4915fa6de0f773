#!/usr/bin/env bash
# A kernel's source is compiled twice, for the GPU and for the executor. An inline function of gpu/ that both compilations
# define under one name is one symbol to the linker, which keeps either: kernels would then be launched in the wrong home.
# Arguments: the repository, the folder with the objects of the GPU's kernels, that with the executor's.
set -euo pipefail
source=$1 gpu_objects=$2 simt_objects=$3
shared_names() {  # functions that may be merged: weak, ours
  find "$1" -name '*.o' -exec nm -C --defined-only {} + | sed -nE 's/^[0-9a-f]+ [WV] (.*attest::.*)$/\1/p' | grep -v '^std::\|^void std::\|(anonymous namespace)' | sort -u
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
shared_names "$gpu_objects" >"$scratch/gpu"
shared_names "$simt_objects" >"$scratch/simt"
[ -s "$scratch/simt" ] && [ -s "$scratch/gpu" ] || { echo "no objects in $gpu_objects or $simt_objects"; exit 1; }
# What launches, or is launched, must differ. Anything else is the same code in both.
bad=$(comm -12 "$scratch/gpu" "$scratch/simt" | grep -E 'attest::[a-z_]*(launch|resident|start_)[a-z_]*[(<]' || true)
[ -z "$bad" ] || { printf 'one symbol for both homes of a kernel:\n%s\n' "$bad"; exit 1; }
# No kernel may have one either: __global__ functions are found by their launch stubs.
stubs=$(find "$gpu_objects" -name '*.o' -exec nm -C --defined-only {} + | sed -nE 's/^[0-9a-f]+ [WV] (void )?(.*attest::.*)$/\2/p' | grep -v 'std::' | sort -u | comm -12 - <(sed -E 's/^void //' "$scratch/simt" | sort -u))
for header in "$source"/gpu/primitives/*.cuh; do
  for kernel in $(sed -nE 's/^.*__global__ .*void[^(]* ([a-z0-9_]+)\(.*$/\1/p' "$header"); do
    if grep -qE "attest::$kernel[(<]" <<<"$stubs"; then echo "kernel $kernel of $header has one symbol for both homes"; exit 1; fi
  done
done
echo "both homes keep their own launches"
