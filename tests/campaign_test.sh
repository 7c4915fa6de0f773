#!/usr/bin/env bash
# The program as a user meets it: killed, interrupted, resumed, sharded, replayed, minimised. Argument: the binary.
set -u
attest=$1
source "${BASH_SOURCE[0]%/*}/checks.sh"
has() { grep -qF -- "$2" "$1" || { echo "'$2' is not in:"; cat "$1"; return 1; }; }
# Waits for the first state of a campaign, as long as its process lives.
begun() { until [ -s "$1/campaign.json" ] || ! kill -0 "$2" 2>/dev/null; do sleep 0.1; done; }

# One law: this is about campaigns, not about what they find.
options=(--kernel 'o5*,o1*' --law within_bound --max-len 20 --jobs 2)
"$attest" verify "${options[@]}" --cases 40 --out whole >whole.log 2>&1
check "a campaign passes" [ $? -eq 0 ]
check "the negative control shows the law and the layer that killed it" has whole.log "(bound layer)"

"$attest" verify --kernel 'o5*' --cases 1 --shard 2/2 --out empty >empty.log 2>&1
check "a share without cases is no pass" [ $? -eq 4 ]
check "and it is said why" has empty.log "o5_deferred: inconclusive: no case was asked for"
"$attest" verify --kernel 'o5*' --law within_bound --max-len 20 --max-head-dim 16 --cases 3 --out few >few.log 2>&1
check "what a kernel claims and no case tested is named" has few.log "o5_deferred: claimed and not tested: "

unreached() { grep -c '^  not reached' "$1"; }
check "what no case reached is one line" [ "$(unreached few.log)" -eq 1 ]
check "which says how to see all of it" has few.log "(--coverage names them)"
"$attest" verify --kernel 'o5*' --law guards_untouched --max-len 20 --cases 3 --coverage --out all >all.log 2>&1
check "and then it is many" [ "$(unreached all.log)" -gt 9 ]
check "what was not compared has no ratio" grep -qE '^o5_deferred +cpu .* - +- +yes  passed$' all.log
check "and what was has one" grep -qE '^o5_deferred +cpu .* [0-9]\.[0-9]{3} +[0-9]\.[0-9]{3} +yes  passed$' few.log

# A full disk: a record file that takes nothing, and a limit on the size of files.
mkdir full
ln -s /dev/full full/verify.jsonl
"$attest" verify "${options[@]}" --cases 9 --out full >full.log 2>full.err
check "a full disk is the machine's fault" [ $? -eq 3 ]
check "but the table is printed" grep -qE '^o5_deferred .* passed$' full.log
check "and nothing is said to be kept or passed" sh -c '! grep -qE "^(PASSED|records)" full.log'
check "it is said what could not be written" has full.err "attest: full/verify.jsonl: cannot write"
(trap '' XFSZ; ulimit -f 1; "$attest" verify "${options[@]}" --cases 9 --out limited 2>&1; echo "exit code $?") | cat >limited.log
check "also where not even the state can be written" has limited.log "exit code 3"
check "the table is printed then, too" grep -qE '^o5_deferred .* passed$' limited.log

# Colours: on a terminal alone, and only where they are wanted.
on_terminal() { python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$@" </dev/null; }
escapes() { grep -c $'\e\[3[0-9]m' "$1"; }
quick=("$attest" verify "${options[@]}" --cases 9 --out quick)
TERM=xterm on_terminal env -u NO_COLOR "${quick[@]}" >colours.log 2>&1
check "verdicts have colours on a terminal: two of the table, two heads" [ "$(escapes colours.log)" -eq 4 ]
TERM=xterm NO_COLOR=1 on_terminal "${quick[@]}" >plain.log 2>&1
check "none with NO_COLOR" [ "$(escapes plain.log)" -eq 0 ]
check "none in a file" [ "$(escapes whole.log)" -eq 0 ]

"$attest" verify "${options[@]}" --cases 1000000 --out killed >killed.log 2>&1 &
victim=$!
begun killed "$victim"
kill -9 "$victim"; wait "$victim" 2>/dev/null
done_before=$(grep -o '"cases": [0-9]*' killed/campaign.json | tail -n 1 | tr -dc 0-9)
check "a killed campaign leaves its state" [ "$done_before" -gt 0 ]
"$attest" verify --resume --out killed --cases $((done_before + 20)) >resumed.log 2>&1
check "it goes on with the options it was begun with" [ $? -eq 0 ]
check "the control and the kernel are there again" has resumed.log "o5_deferred"
# A campaign that is finished, resumed: what it came to, and nothing twice.
records_of() { cat "$1/verify.jsonl" | wc -l; }
before=$(records_of whole)
"$attest" verify --resume --out whole >finished.log 2>&1
check "a finished campaign has its exit code again" [ $? -eq 0 ]
check "and says that it was finished" has finished.log "the campaign in whole was finished before: nothing is appended"
check "and what it came to" has finished.log "PASSED"
check "its records are not written a second time" [ "$(records_of whole)" -eq "$before" ]
"$attest" verify --resume --out whole --json >finished.jsonl 2>finished.err
check "its records are printed for --json, and nothing else" [ "$(grep -c '^{' finished.jsonl)-$(wc -l <finished.jsonl)" = 2-2 ]
"$attest" verify --resume --out whole --cases 50 >more.log 2>&1
check "asked for more cases it goes on" sh -c '! grep -qF "finished before" more.log'
check "and writes what it came to then" [ "$(records_of whole)" -eq $((before + 2)) ]
"$attest" verify --kernel o5_deferred --law within_bound --max-len 20 --for 1s --out timed >timed.log 2>&1
"$attest" verify --resume --out timed >timed.log 2>&1
check "one by time is finished when its time is over" has timed.log "finished before"
check "what was inconclusive is so again" sh -c '"$1" verify --resume --out empty >again.log 2>&1; [ $? -eq 4 ]' _ "$attest"
rm full/verify.jsonl
"$attest" verify --resume --out full >unfull.log 2>&1
check "a campaign whose records found no room writes them when it is resumed" [ "$(records_of full)" -eq 2 ]
"$attest" verify --resume --out killed --seed 7 >refused.log 2>&1
check "another seed is refused" [ $? -eq 2 ]
check "and it is said why" has refused.log "--resume takes --seed from the campaign it resumes"
for command in verify mutants calibrate 'errors o5_deferred' 'study run none.yaml'; do
  check "$command takes no negative seed for a large one" refuses 2 "--seed: Value -1 not in range" "$attest" $command --seed -1
done
"$attest" verify --resume --out nowhere >nowhere.log 2>&1
check "nothing to resume is bad input" [ $? -eq 2 ]

"$attest" verify "${options[@]}" --cases 1000000 --out stopped >stopped.log 2>&1 &
victim=$!
begun stopped "$victim"
kill -TERM "$victim"; wait "$victim"
check "an interrupted campaign ends with 130" [ $? -eq 130 ]
check "the table shows what was done" has stopped.log "o5_deferred"
check "what is not finished has not passed" has stopped.log "not finished"
check "and nothing is called passed" sh -c '! grep -qi "passed$" stopped.log'
check "it says how to go on" has stopped.log "attest verify --resume --out stopped"

"$attest" verify --operation backward --kernel 'backward_*,bwd_*' --cases 2 --no-regressions --out gradients >gradients.log 2>&1
check "a table of gradients has no more than 100 columns" [ "$(sed -n '/^kernel /,/^$/p' gradients.log | awk 'length > 100' | wc -l)" -eq 0 ]
check "and one row a kernel" [ "$(sed -n '/^kernel /,/^$/p' gradients.log | grep -c ' passed$')" -ge 3 ]

example=$(ls whole/counterexamples/*.json)
"$attest" replay "$example" >replay.log 2>&1
check "a counterexample replays" [ $? -eq 1 ]
check "and says so" has replay.log "reproduced"
"$attest" verify --minimize "$example" --out small >small.log 2>&1
check "a shrunk one cannot be shrunk further" has small.log "no simpler case fails"
for bad in "--timeout 0" "--timeout never" "--memory-limit 8GB" "--memory-limit 1KiB" "--for 10" "--shard 3/2" "--shard 0/2" "--shard x" "--for -1s"; do
  # shellcheck disable=SC2086
  "$attest" verify $bad --out bad >bad.log 2>&1
  check "'$bad' is bad input" [ $? -eq 2 ]
  check "'$bad' gets one line with what is allowed" has bad.log "allowed:"
done
[ "$failures" -eq 0 ]
