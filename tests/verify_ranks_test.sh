#!/usr/bin/env bash
# `attest verify` as four ranks that share one campaign, one of which is killed. Argument: the binary.
set -u
attest=$1
source "${BASH_SOURCE[0]%/*}/checks.sh"
has() { grep -qF -- "$2" "$1" || { echo "'$2' is not in:"; cat "$1"; return 1; }; }
unset "${!OMPI_@}" "${!PMI_@}" "${!SLURM_@}"

options=(--kernel 'o5*,o1*' --law within_bound --max-len 20 --no-regressions --jobs 1 --cases 150)
as_rank() {  # index, arguments...
  local index=$1; shift
  OMPI_COMM_WORLD_RANK=$index OMPI_COMM_WORLD_SIZE=4 exec "$attest" verify "$@"
}
# Records without times.
found() {
  python3 -c 'import json, sys
for line in open(sys.argv[1]):
    record = json.loads(line)
    print(record["labels"], record["verdict"], record["subject"] if "subject" in record else "",
          {m["name"]: m["value"] for m in record["measurements"] if "time" not in m["name"]})' "$1"
}

as_rank 1 "${options[@]}" --out shared >rank1.log 2>&1 & victim=$!
until compgen -G 'shared/chunks/[0-9]*.claim1' >claims || ! kill -0 $victim 2>/dev/null; do sleep 0.02; done
kill -STOP $victim  # in the middle of a chunk
ranks=()
for index in 0 2 3; do
  as_rank "$index" "${options[@]}" --out shared >"rank$index.log" 2>&1 & ranks+=($!)
done
kill -9 $victim
# While they wait for the dead one, which takes ten seconds: what they are compared with, and ranks whose time is over.
"$attest" verify "${options[@]}" --out alone >alone.log 2>&1
timed=()
for index in 0 1; do
  as_rank $index --kernel 'o5*' --law within_bound --max-len 20 --jobs 1 --for 1s --out timed >timed$index.log 2>&1 & timed+=($!)
done
wait "${timed[@]}"
# Inconclusive: on a busy machine a second may be over before a case was judged.
check "ranks end together when time is over, and one reports" [ "$(cat timed?.log | grep -cE '^(PASSED|INCONCLUSIVE)$')" -eq 1 ]
codes=
for rank in $victim "${ranks[@]}"; do wait "$rank" 2>/dev/null; codes+="$? "; done
check "the ranks that live end well" [ "$codes" = "137 0 0 0 " ]
check "one of them reports" [ "$(cat rank[023].log | grep -c '^PASSED$')" -eq 1 ]
check "the others say one line each" [ "$(cat rank[023].log | grep -c 'rank [134] of 4 (Open MPI): judged [0-9]* cases in .*; another rank reports$')" -eq 2 ]
check "together they found what one process finds" [ "$(found shared/verify.jsonl)" = "$(found alone/verify.jsonl)" ]
check "that is something" [ "$(found alone/verify.jsonl | wc -l)" -eq 2 ]
left=$(ls shared/chunks | sed -n 's/\.claim1$//p')
check "the killed one was at a chunk, and another judged it" compgen -G "shared/chunks/$left.*.json"
check "a failure is shrunk, and kept once" [ "$(ls shared/counterexamples)" = "$(ls alone/counterexamples)" ]

(as_rank 0 "${options[@]}" --out shared) >again.log 2>&1
check "rank 0 of a finished campaign shows it again" has again.log "the campaign in shared was finished before: nothing is appended"
(as_rank 2 "${options[@]}" --out shared) >late.log 2>&1
check "a rank that comes late says a line" [ "$(cat late.log)" = "rank 3 of 4 (Open MPI): the campaign in shared was finished before" ]
check "another campaign in the folder is refused" refuses 2 "allowed: the same, for ranks share one campaign" \
  env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 "$attest" verify "${options[@]}" --seed 2 --out shared
check "what ranks cannot share is refused" refuses 2 "rank 1 of 4 (Open MPI): --large is not shared" \
  env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 "$attest" verify --large --kernel 'o5*'
(as_rank 2 --kernel 'o5*' --law within_bound --max-len 20 --cases 2 --shard 1/1 --out own) >own.log 2>&1
check "--shard 1/1 ignores who else was started" has own.log "PASSED"
[ "$failures" -eq 0 ]
