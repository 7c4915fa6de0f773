#!/usr/bin/env bash
# `attest study check`, `schema`, `keys` and `attest list studies`. Arguments: the repository's root, the binary.
set -u
root=$1 attest=$2
source "${BASH_SOURCE[0]%/*}/checks.sh"

said() {  # exit code, lines on stderr, a part of what is said, file...
  local expected=$1 lines=$2 message=$3; shift 3
  "$attest" study check "$@" >out 2>err
  local code=$?
  [ $code -eq "$expected" ] && [ "$(wc -l <err)" -eq "$lines" ] && cat out err | grep -qF -- "$message" && return
  echo "exit code $code, want $expected, $lines lines on stderr and '$message':"; cat out err; return 1
}

cat >wrong.yaml <<'END'
kernel: k5_padded_tiles
problem: {batch: 0}
END
check "every mistake has its line, place and exit code 2" said 2 4 "wrong.yaml:2:18: 'problem.batch' is '0'" wrong.yaml
check "a missing file is named" said 2 1 "nothing.yaml: no such file or shipped study; see attest list studies" nothing.yaml
check "a misspelt study has near ones" said 2 1 "block_siz: no such file or shipped study; near: block_size" block_siz
check "a device that never ends is no study" said 2 1 "/dev/zero: is no regular file" /dev/zero
mkfifo pipe
check "nor a pipe that nobody fills" said 2 1 "pipe: is no regular file" pipe
cat >none.yaml <<'END'
question: Q?
kernels: k5_padded_tiles
constraints: [shared_bytes > 1GiB]
END
check "a study without points is no study" said 2 1 "none.yaml: no point is left to run" none.yaml
check "what is skipped has its reason" grep -qF "1 skipped by constraint: not: shared_bytes > 1GiB" out
cat >good.yaml <<'END'
question: Q?
kernels: k5_padded_tiles
plan: {query_tile: [16, 32]}
constraints: [shared_bytes <= 227KiB and threads < 1025]
END
check "launches are known without a GPU" said 0 0 "2 points of k5_padded_tiles" --device h200 good.yaml
sed 's/^constraints.*/repeats: 5/' good.yaml >few.yaml
check "too few rounds for an interval are named" said 0 0 "5 rounds have no interval, so that nothing about times is decided; 6 have one" few.yaml
sed 's/^constraints.*/repeats: 6/' good.yaml >enough.yaml
"$attest" study check enough.yaml >out
check "and enough are not" sh -c '! grep -qF "no interval" out'
check "a name stands for a shipped study" said 0 0 "softmax_variants: What does each choice" softmax_variants
check "all shipped studies are listed" [ "$("$attest" list studies | grep -c '^  [a-z0-9_]* ')" -eq "$(ls "$root"/experiments/studies/*.yaml | wc -l)" ]
check "the schema is JSON" sh -c "'$attest' study schema | python3 -m json.tool >/dev/null"
check "keys are listed" sh -c "'$attest' study keys | grep -qF '\`question\`'"
# Builds without CUDA know peers by name alone: the table must have those that a build with CUDA registers.
"$attest" list kernels | awk '$2 == "gpu" {gpu[$1]} $2 == "simt" {simt[$1]} END {for (k in gpu) if (!(k in simt)) print k}' |
  sort >registered
tr '\n' ' ' <"$root/experiments/study/language/kernel_choice.cpp" | grep -o 'names{[^}]*}' | head -1 | grep -o '"[a-z0-9_]*"' | tr -d '"' | sort >named
check "peers are those that study files may name" sh -c '[ -z "$(comm -23 registered named)" ]'
[ $failures -eq 0 ]
