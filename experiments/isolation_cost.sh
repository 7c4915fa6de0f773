#!/usr/bin/env bash
# What worker processes cost: the default run with and without them, alternating, and the user and system time of each.
#   experiments/isolation_cost.sh build/release/bin/attest [repeats] [options of attest verify...]
# CPU time is what counts on a machine that does other things as well; it includes the workers.
set -euo pipefail
attest=$1 repeats=${2:-5}; shift; [ $# -eq 0 ] || shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
measure() {  # mode, options...
  local mode=$1; shift
  local TIMEFORMAT="$mode %R s elapsed, %U s user, %S s system"
  { time "$attest" verify --out "$scratch/$mode" "$@" >/dev/null 2>&1; } 2>&1
}
for _ in $(seq "$repeats"); do
  measure in-process --in-process "$@"
  measure workers "$@"
done
