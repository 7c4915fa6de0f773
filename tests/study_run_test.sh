#!/usr/bin/env bash
# `attest study run` and `resume` as a user meets them: killed, cut short, in parts, under mpirun. Argument: the binary.
set -u
attest=$1
source "${BASH_SOURCE[0]%/*}/checks.sh"
has() { grep -qF -- "$2" "$1" || { echo "'$2' is not in:"; cat "$1"; return 1; }; }
unset "${!OMPI_@}" "${!PMI_@}" "${!SLURM_@}"

cat >tiny.yaml <<'YAML'
question: Which tiles of K3 take the fewest passes through shared memory?
kernels: [k3_sequence_parallel]
problem:
  heads: 2
  length: [20, 24, 28, 32, 36, 40, 44, 48]
  head_dim: 16
  mask: [none, causal_top_left]
plan:
  query_tile: 16
  key_tile: [16, 32]
executor: simt
counters: [dram]
time_budget: 1s
expect:
  - that: all(model.shared_passes > 0)
    because: every Plan of K3 keeps its tiles there
YAML

# Ids of finished points in a folder, sorted; a point that is there twice is there twice.
points() {
  cat "$1"/records*.jsonl | grep '"kind":"study"' | grep -o '"point":"[0-9a-f]*"' | sort
}
lines() { cat "$1"/records*.jsonl 2>/dev/null | wc -l; }
same_as_whole() { diff <(points whole) <(points "$1"); }
# Waits until the folder has more lines than before or the process is gone, and a little longer: into the middle of a point.
wait_for_lines() {  # folder, lines, process
  until [ "$(lines "$1")" -gt "$2" ] || ! kill -0 "$3" 2>/dev/null; do sleep 0.02; done
  sleep 0.0$((RANDOM % 5))
}

"$attest" study run tiny.yaml --out whole >whole.log 2>&1
check "a study runs without a GPU" [ $? -eq 0 ]
check "it says that nothing is timed" has whole.log "nothing is timed without a GPU"
check "and that hardware counters are not taken" has whole.log "hardware counters need one too: dram not taken"
check "it answers what was expected" has whole.log "holds      all(model.shared_passes > 0): 32 of 32 points"
check "a budget of GPU time leaves nothing out" has whole.log "0 left out"
check "every point has a record" [ "$(points whole | wc -l)" -eq 32 ]
check "and one only" [ "$(points whole | uniq -d | wc -l)" -eq 0 ]
check "the study is in the folder as it was run" cmp tiny.yaml whole/study.yaml
check "verdicts are kept" [ -s out/verified.jsonl ]
judged=$(wc -l <out/verified.jsonl)

kills=0
"$attest" study run tiny.yaml --out killed --jobs 1 >killed.log 2>&1 & victim=$!
for _ in 1 2 3 4; do
  before=$(lines killed)
  wait_for_lines killed "$before" $victim
  kill -9 $victim 2>/dev/null && kills=$((kills + 1))
  wait $victim 2>/dev/null
  "$attest" study resume killed --jobs 1 >>killed.log 2>&1 & victim=$!
done
wait $victim
check "after kill -9 it goes on to the end" [ $? -eq 0 ]
check "it was killed in the middle" [ $kills -ge 2 ]
check "no finished point is lost and none is repeated" same_as_whole killed
check "every record bears the name of the study" [ "$(grep -c '"study":"tiny"' killed/records.jsonl)" -eq "$(lines killed)" ]
check "nothing was judged twice" [ "$(wc -l <out/verified.jsonl)" -eq "$judged" ]

cp -r whole cut
sed -i '/study_answer/,$d' cut/records.jsonl
truncate -s -30 cut/records.jsonl
"$attest" study resume cut >cut.log 2>&1
check "a line that was cut short is measured again" has cut.log "1 measured"
check "and then stands there whole" same_as_whole cut
"$attest" study resume cut >cut.log 2>&1
check "a study that is done has nothing left" has cut.log "0 measured"
check "but its answer" has cut.log "holds "

{ sed 's/length: .*/length: 20/' tiny.yaml; echo '  - that: all(model.shared_passes < 0)'; } >refuted.yaml
"$attest" study run refuted.yaml --junit refuted.xml >refuted.log 2>&1
check "an expectation that is refuted fails a study" [ $? -eq 1 ]
check "a CI gets expectations as test cases" python3 -c 'import xml.etree.ElementTree as xml
suite, = xml.parse("refuted.xml").getroot()
cases = [(case.get("name"), case[0].get("message") if len(case) else None) for case in suite.findall("testcase")]
assert suite.get("name") == "refuted" and suite.get("failures") == "1", suite.attrib
assert cases == [("every point gives the right answer", None), ("all(model.shared_passes > 0)", None), ("all(model.shared_passes < 0)", "0 of 4 points")], cases'

flock --no-fork cut/records.jsonl sleep 3600 & holder=$!
while flock --nonblock cut/records.jsonl true; do sleep 0.02; done
"$attest" study resume cut >two.log 2>two.err
check "a second writer is refused" [ $? -eq 3 ]
check "with one line" [ "$(grep -c 'another run is writing to it' two.err)-$(wc -l <two.err)" = 1-1 ]
"$attest" study resume cut --shard 1/2 >two.log 2>two.err
check "a part of it as well" [ $? -eq 3 ]
kill $holder 2>/dev/null
"$attest" study run tiny.yaml --out whole >again.log 2>again.err
check "a folder with results is not begun again" [ $? -eq 2 ]
check "and it says what to do" has again.err "attest study resume whole"
"$attest" study resume nowhere >no.log 2>no.err
check "nothing to resume is bad input" [ $? -eq 2 ]

"$attest" study run tiny.yaml --out stopped --jobs 1 >stopped.log 2>&1 & victim=$!
wait_for_lines stopped 2 $victim
kill -TERM $victim; wait $victim
check "an interrupted study ends with 130" [ $? -eq 130 ]
check "and says how to go on" has stopped.log "attest study resume stopped"

# Ranks without MPI: who we are stands in the environment. Rank 1 dies; two others pick its points up.
for rank in 0 2; do
  OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK=$rank \
    "$attest" study run tiny.yaml --out ranks >rank$rank.log 2>&1
done
check "a rank writes a file of its own" [ -s ranks/records.3-of-3.jsonl ]
check "and says that others have not" has rank2.log "rank 3 of 3 (Open MPI) is done, others are not: the last one answers"
check "ranks do a part each" [ "$(points ranks | wc -l)" -lt 32 ]
for rank in 0 1; do
  SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=$rank "$attest" study resume ranks >again$rank.log 2>&1
done
check "a dead rank's points are picked up by ranks of another number" same_as_whole ranks
check "the last one answers" has again1.log "holds "
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$attest" study run tiny.yaml --out alike >alike.log 2>&1
"$attest" study run tiny.yaml --shard 2/2 --seed 5 --out alike >alike.log 2>alike.err
check "a part in another order, which would lose and repeat points, is bad input" [ $? -eq 2 ]
check "and says what differs" has alike.err "was begun with --seed 1, this is 5"
PMI_RANK=7 PMI_SIZE=2 "$attest" study resume ranks >no.log 2>no.err
check "a rank that cannot be is bad input" [ $? -eq 2 ]

if command -v mpirun >/dev/null; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  mpirun --oversubscribe -n 4 "$attest" study run tiny.yaml --out mpi --jobs 1 >mpi.log 2>&1
  check "four ranks of mpirun run a study" [ $? -eq 0 ]
  check "each writes its file" [ "$(ls mpi/records.?-of-4.jsonl | wc -l)" -eq 4 ]
  check "together they are the whole" same_as_whole mpi
  mpirun --oversubscribe -n 4 "$attest" study run tiny.yaml --out dead --jobs 1 >dead.log 2>&1 & launcher=$!
  wait_for_lines dead 4 $launcher
  pkill -9 -P $launcher -n; wait $launcher  # one rank, and with it mpirun ends the others
  check "a rank that is killed ends the run" [ $? -ne 0 ]
  mpirun --oversubscribe -n 2 "$attest" study resume dead --jobs 1 >dead.log 2>&1
  check "two ranks finish it" [ $? -eq 0 ]
  check "without losing or repeating a point" same_as_whole dead
else
  echo "skipped: mpirun is not installed"
fi

sed 's/^executor.*/&\nconstraints: [shared_bytes < 1B]/' tiny.yaml >nothing.yaml
"$attest" study run nothing.yaml --out nothing >nothing.log 2>nothing.err
check "a study of which no point is left is bad input" [ $? -eq 2 ]
check "after it said why" has nothing.log "32 skipped by constraint: not: shared_bytes < 1B"
check "and leaves no folder" [ ! -e nothing ]
if ! "$attest" study run tiny.yaml --executor gpu --out gpu >gpu.log 2>gpu.err; then
  check "a GPU that is not there leaves no folder behind" [ ! -e gpu ]
fi

for budget in 5min '5 min' 90s 0.5h; do
  "$attest" study run tiny.yaml --out "budget $budget" --shard 1/500 --time-budget "$budget" >budget.log 2>&1
  check "a time budget of $budget is one, in a file as on the command line" [ $? -eq 0 ]
  sed "s/^time_budget: .*/time_budget: $budget/" tiny.yaml >budget.yaml
  "$attest" study check budget.yaml >budget.log 2>&1
  check "a file may give $budget, too" [ $? -eq 0 ]
done
"$attest" study run tiny.yaml --time-budget 1ms --out hurried >hurried.log 2>/dev/null
check "a study that its time budget cuts short is inconclusive" [ $? -eq 4 ]
check "says how many of how many points are missing" grep -qE "^INCONCLUSIVE: the time budget ended with [1-9][0-9]* of 32 points not measured" hurried.log
check "and decides nothing that was expected" grep -qE "^undecided  all\(model.shared_passes > 0\): [1-9][0-9]* of 32 points left out" hurried.log
"$attest" study resume hurried --time-budget 5min >hurried.log 2>&1
check "with more time it is whole" [ $? -eq 0 ]
check "and answers" has hurried.log "holds      all(model.shared_passes > 0): 32 of 32 points"
check "once" [ "$(grep -c '"kind":"study_answer"' hurried/records.jsonl)" -eq 1 ]
for bad in "--shard 3/2" "--time-budget never" "--executor tpu"; do
  # shellcheck disable=SC2086
  "$attest" study run tiny.yaml $bad --out bad >bad.log 2>&1
  check "'$bad' is bad input" [ $? -eq 2 ]
  check "'$bad' gets one line with what is allowed" has bad.log "allowed:"
done
"$attest" study run tiny.yaml --jobs -1 --out bad >bad.log 2>&1
check "fewer than no jobs are bad input" [ $? -eq 2 ]
check "and leaves no folder" [ ! -e bad ]
[ "$failures" -eq 0 ]
