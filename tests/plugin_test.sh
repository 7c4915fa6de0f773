#!/usr/bin/env bash
# Plugins as a user meets them: examples/plugin built with its own CMake, verified, listed, replayed; and the test plugins
# that go wrong while they run. Usage: plugin_test.sh REPOSITORY ATTEST FOLDER_OF_TEST_PLUGINS
set -euo pipefail

repository=$1 attest=$2 plugins=$3
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
cd -- "$scratch"

failures=0
passes=0
check() {  # title, then a command that must succeed
  local title=$1; shift
  if "$@"; then passes=$((passes + 1)); else failures=$((failures + 1)); echo "FAILED: $title"; fi
}
run() {  # arguments of attest; sets status, out, err
  status=0
  "$attest" "$@" >"$scratch/out.txt" 2>"$scratch/err.txt" || status=$?
  out=$(<"$scratch/out.txt") err=$(<"$scratch/err.txt")
}
is() { [ "$1" = "$2" ] || { echo "  got '$1', want '$2'"; return 1; }; }
has() { [[ $1 == *"$2"* ]] || { echo "  '$2' is not in: $1"; return 1; }; }
verify() { run verify --plugin "$1" --cases "${cases:-60}" --seed 3 --jobs 2 "${@:2}"; }

cmake -S "$repository/examples/plugin" -B build >"$scratch/cmake.txt" 2>&1 &&
  cmake --build build >>"$scratch/cmake.txt" 2>&1 || { cat "$scratch/cmake.txt"; exit 1; }

verify build/host_attention.so
check "the host example passes" is "$status" 0
check "only the plugin's kernel is verified" is "$(grep -cE '^[a-z0-9_/]+ +(cpu|simt|gpu) ' <<<"$out")" 1
check "it is named" has "$out" my_host_attention
check "the verdict is passed" has "$out" PASSED

cases=20 verify build/host_backward.so
check "the backward example passes" is "$status" 0
check "as a kernel of that operation" has "$out" my_backward

cases=20 verify build/host_select.so
check "the example that chooses keys passes" is "$status" 0
check "as a kernel of that operation" has "$out" "my_select "
check "by the laws of choices" has "$out" PASSED

# A kernel that takes pages alone, in every command that takes kernels.
cases=20 verify build/host_paged.so
check "the paged example passes" is "$status" 0
paged() { run "$1" "${@:2}" --plugin build/host_paged.so; }
one_line() { is "$status" 2 && is "$(wc -l <<<"$err")" 1 && has "$err" "$1"; }
if ! "$attest" doctor | grep '^build' | grep -q sanitizers; then
  timed=(bench --executor cpu --problem 'h2 q1 k40 d8 fp32' --benchmark_min_time=0.001)
  paged "${timed[@]}"
  check "what takes pages alone is timed in pages" has "$out" "my_paged on cpu/b1 h2/2 q1 k40 d8 none fp32 paged16/manual_time"
  paged "${timed[@]}" --layouts paged4/csr/shuffled1
  check "of the form and order that is asked for" has "$out" "fp32 paged4/csr/shuffled1/manual_time"
  paged "${timed[@]}" --layouts contiguous
  check "and is refused where there are none" one_line "my_paged: it needs K and V in pages"
  paged "${timed[@]}" --layouts paged4/joined
  check "as is one pool of both" one_line "K and V in one pool"
  paged "${timed[@]}" --layouts page4
  check "and what are no pages" one_line "--layouts: paging 'page4': part 'page4' is unknown; allowed: paged16"
fi
paged errors --problem 'h2 q1 k40 d8' --family normal --sets 1 --layouts 'paged{4,8}/csr,paged4'
check "its errors are measured in pages" is "$(grep -cE 'none paged(4|8)(/csr)?, inputs normal' <<<"$out")" 3
paged errors --problem 'h2 q1 k40 d8' --family normal --layouts contiguous
check "and in nothing else" one_line "can run the problem; my_paged: it needs K and V in pages"
paged explain my_paged
check "it is explained in pages" has "$out" "layouts  K and V in paged16"
paged explain my_paged --layouts contiguous
check "and in nothing else" one_line "it needs K and V in pages"

# What examples/plugin/README.md says of its wrong kernels: each command, and the lines that it shows.
readme=$repository/examples/plugin/README.md
mkdir -p out/plugin
cp build/wrong_paged.so build/wrong_backward.so build/wrong_select.so out/plugin
shown_by_readme() {  # name of the shared object
  local lines=0 line command
  command=$(sed -n "s|^\$ ./attest \(verify --plugin out/plugin/$1\.so.*\)|\1|p" "$readme")
  [ -n "$command" ] || { echo "  the README shows no command"; return 1; }
  run $command
  is "$status" 1 || return 1
  while IFS= read -r line; do
    lines=$((lines + 1))
    has "$out" "$line" || return 1
  done < <(awk -v start="$1.so" 'index($0, "$ ./attest verify") { on = index($0, start) > 0; next } /^```/ { on = 0 } on && NF && $1 != "..."' "$readme")
  [ "$lines" -ge 6 ]
}
check "the README shows what is said of wrong_paged.so" shown_by_readme wrong_paged
check "the README shows what is said of wrong_backward.so" shown_by_readme wrong_backward
check "the README shows what is said of wrong_select.so" shown_by_readme wrong_select

run list --plugin build/host_attention.so
check "list shows its kernels" has "$out" "online softmax over key tiles"

run explain my_host_attention --plugin build/host_attention.so --problem 'n64 d64'
check "it is explained as far as models go" has "$out" "compulsory"

cat >mine.yaml <<'END'
question: How large are the errors of mine?
kernels: my_host_attention
executor: cpu
problem: {length: [16, 32], head_dim: 16}
metrics: [error.rmse]
END
run study check mine.yaml
check "a study without its plugin does not know the kernel" has "$err" "mine.yaml:2:10: no kernel is called 'my_host_attention'"
cp build/host_attention.so mine.so
run study run mine.yaml --plugin mine.so --out study
check "with it the study runs" is "$status" 0
check "and both points are measured" has "$out" "2 measured, 0 refused"
sed -i '2,$d' study/records.jsonl
(cd / && "$attest" study resume "$scratch/study") >out.txt 2>&1
check "it is resumed from anywhere without naming the plugin again" has "$(<out.txt)" "1 measured"
sed -i '2,$d' study/records.jsonl
cp "$plugins/correct.so" mine.so
run study resume study
check "but not with another plugin in its place" is "$status" 2
cp build/host_attention.so mine.so
printf 'more' >>mine.so
run study resume study
check "nor with one that was built again" has "$err" "was begun by the program of commit"
if ! "$attest" doctor | grep '^build' | grep -q sanitizers; then
  run bench --executor cpu --plugin build/host_attention.so --problem 'n16 d8' --benchmark_min_time=0.001
  check "it is timed, and no other kernel" is "$(grep -c '/manual_time' <<<"$out")" 1
fi
if [[ $("$attest" doctor) == *"gpu        not available"* ]]; then
  run tune --plugin build/host_attention.so --problem 'n16 d8'
  check "tuning needs a GPU" has "$err" "tune needs a GPU"
fi

run errors --plugin build/host_attention.so --problem 'h1 n9 d8' --family normal
check "its errors are measured" [ -n "$(grep -E '^my_host_attention +cpu +fp32 LSE .*\]$' <<<"$out")" ]
check "and no other kernel's, in both tables" is "$(grep -c ' LSE ' <<<"$out")" 2

verify build/wrong_attention.so
check "the wrong example fails" is "$status" 1
check "its counterexample is shrunk to one batch and one head" has "$out" "b1 h1/1"
check "it names the mask" has "$out" causal_bottom_right
replay_line() { sed -n 's/.*attest replay //p' <<<"$out" | head -n 1; }
file=$(replay_line)
check "the counterexample is a file" [ -f "$file" ]
(mkdir elsewhere && cp "$file" elsewhere/it.json)
run replay elsewhere/it.json
check "replay finds the plugin again" is "$status" 1
check "and reproduces the failure" has "$out" reproduced
sed 's|wrong_attention[.]so|moved.so|' elsewhere/it.json >elsewhere/moved.json
run replay elsewhere/moved.json
check "a plugin that was moved is bad input" is "$status" 2
check "and its replay says how to go on" has "$err" "moved.so', which is not there; allowed: --plugin FILE"
run replay elsewhere/moved.json --plugin build/wrong_attention.so
check "which reproduces the failure" has "$out" reproduced

verify "$plugins/error_in_run.so"
check "a returned error is a failure" is "$status" 1
check "of a law of its own" has "$out" "returns_no_error (exact layer)"
check "the plugin's sentence is shown" has "$out" "no fourth?query today"
run replay "$(replay_line)"
check "and is replayed" has "$out" reproduced
verify "$plugins/round_up_in_run.so"
check "another rounding mode is a failure" is "$status" 1
check "of its law" has "$out" "floating_point_mode_kept (exact layer)"
cases=12 verify "$plugins/flush_on_load.so"
check "what a plugin does to the floating-point mode while it is loaded disturbs nobody" is "$status" 0
for where in "" --in-process; do
  cases=4 verify "$plugins/noisy.so" --json $where
  check "a plugin that prints passes $where" is "$status" 0
  check "and its words are not in --json $where" is "$(grep -vc '^{"schema":' <<<"$out")" 0
  check "but for one record $where" is "$(wc -l <<<"$out")" 1
done
cases=4 verify "$plugins/knows_the_worker.so"
check "a plugin does not run in the process that judges it" is "$status" 0
verify "$plugins/wrong_answer.so"
check "a wrong answer is a failure" is "$status" 1
check "the bound finds it" has "$out" "within_bound"
check "the failure stands behind the table" is "$(grep -nE '^(kernel  |FAILED, )' <<<"$out" | sed 's/[ ,].*//;s/.*://' | tr '\n' ' ')" "kernel FAILED "
check "a counterexample of the past says what it is" has "$out" "a counterexample of the past that every kernel gets"
check "nothing is said of what a kernel that failed did not reach" is "$(grep -c 'not reached' <<<"$out")" 0
verify "$plugins/not_deterministic.so" --every-law
check "a false claim of determinism is a failure" is "$status" 1
check "by a law of equal bits" has "$out" "_bitwise (exact layer)"
verify "$plugins/aligned.so"
check "a kernel with layout needs passes" is "$status" 0

# What a plugin's unsupported() refuses is drawn again, rounder in the end; a pass means that most cases were judged.
cases=40 verify "$plugins/multiples_of_64.so"
check "a kernel for multiples of 64 passes" is "$status" 0
check "all of its cases were judged" [ -n "$(grep -E '^test_plugin +cpu +40 .* passed$' <<<"$out")" ]
check "it is said how many were drawn and refused, and why" [ -n "$(grep -E \
  '^test_plugin: [0-9]+ drawn, [0-9]+ refused \(.*"takes only multiples of 64".*\), 40 judged$' <<<"$out")" ]
check "what it takes and did not get is named" [ -n "$(grep -E '^test_plugin: claimed and not tested: .*batch above 64' <<<"$out")" ]
check "what it refuses is not called claimed" [ -z "$(grep 'claimed.*head_dim above' <<<"$out")" ]
cases=40 verify "$plugins/thirteen_queries.so"
check "a kernel that takes little has no pass" is "$status" 4
check "its verdict is inconclusive" [ -n "$(grep -E '^test_plugin .* inconclusive$' <<<"$out")" ]
check "it is said how much was judged" has "$out" "of 40 cases judged and not vacuous, a pass takes half"
check "and the last word says so" is "$(tail -n 1 <<<"$out")" INCONCLUSIVE
cases=40 verify "$plugins/thirteen_queries.so" --json
check "records hold the verdict" has "$out" '"verdict":"inconclusive"'
check "and the kernel's sentence" has "$out" '"refusal":"test_plugin: takes 13 queries"'
for count in cases_asked_for drawn_cases refused_cases judged_cases decided_cases; do
  check "and $count" has "$out" "\"name\":\"$count\",\"value\":"
done
cases=40 verify "$plugins/thirteen_queries.so" --plugin build/wrong_attention.so
check "a failure wins over an inconclusive kernel" is "$status" 1
# Kernels that say what they do not promise; plugin_claims_test.cpp has all of them.
verify "$plugins/claims.so" --kernel 'honest/no_lse,honest/splits_by_batch' --max-len 24
check "honest kernels pass" is "$status" 0
check "without an LSE there is no error of one" [ -n "$(grep -E '^honest/no_lse .* 0\.[0-9]+ +- .*yes +passed$' <<<"$out")" ]
check "a kernel that is not batch-invariant says so" [ -n "$(grep -E '^honest/splits_by_batch .* no +passed$' <<<"$out")" ]
run list --plugin "$plugins/claims.so"
check "in the list, too" [ -n "$(grep -E 'honest/splits_by_batch .*\[not batch-invariant\]' <<<"$out")" ]

# Merges of partial results are kernels like any other.
verify "$plugins/combine.so" --kernel 'honest/*'
check "honest merges pass" is "$(grep -cE '^honest/merge.* passed$' <<<"$out")" 2
cases=20 verify "$plugins/combine.so" --kernel 'twin/merge'
check "a merge that divides less well than it says fails" has "$out" within_bound
run replay "$(replay_line)"
check "and is replayed" has "$out" reproduced

verify "$plugins/unavailable.so"
check "a kernel that says that it cannot run here is trouble with the machine" is "$status" 3
check "in its words" has "$err" "kernel unavailable_plugin cannot run on this machine: no library?for it"

# What kills or stops the process of a kernel: a verdict with a case, a replay line that works as printed, and the
# kernels beside it are judged as if it were not there.
isolated() {  # plugin, verdict, what the line says, more arguments of verify and replay...
  local name=$1 verdict=$2 what=$3 file; shift 3
  cases=12 verify "$plugins/$name.so" --plugin "$plugins/two_kernels.so" --max-len 12 "$@"
  check "$name: exit code 1" is "$status" 1
  check "$name: the verdict is $verdict" [ -n "$(grep -E "^test_plugin .* $verdict" <<<"$out")" ]
  check "$name: it says what happened" has "$out" "$what"
  check "$name: the other kernels pass" is "$(grep -cE "^(first|second)_kernel .* passed" <<<"$out")" 2
  file=$(replay_line)
  check "$name: the counterexample is a file" [ -f "$file" ]
  run replay "$file" "$@"
  check "$name: replay fails, too" is "$status" 1
  check "$name: in the same way" has "$out" "reproduced"
}
isolated crash_in_run crashed "while the kernel ran"
isolated abort_in_run crashed "while the kernel ran"
isolated exit_in_run crashed "called exit(0)"
isolated hang_in_run timed_out "gave no answer within" --timeout 2s
isolated eat_memory_in_run crashed "more than the limit of 1.5 GiB" --memory-limit 1536MiB
isolated write_input_in_run crashed "it wrote to Q, which is an input"
isolated crash_in_later_unsupported crashed "while the kernel was asked whether it can run the case: unsupported()"
isolated hang_in_later_unsupported timed_out "gave no answer within" --timeout 2s
isolated wrong_later_refinement failed "precision field 'division_error' is -1; allowed: 0 to 1"

verify "$plugins/crash_on_load.so"
check "a crash while loading is bad input" is "$status" 2
check "and gets one line" is "$(wc -l <"$scratch/err.txt")" 1
check "that says so" has "$err" "crashes with signal 11"
verify missing.so
check "a missing plugin is bad input" is "$status" 2
run replay <(echo '{"law": "*"}')
check "a bad counterexample stays bad input" is "$status" 2

if [[ $("$attest" doctor) == *"gpu        not available"* ]]; then
  run list --plugin "$plugins/cuda_kernel.so"
  check "a list marks what cannot run here, before anything else is said of it" has "$out" "fp32            [not on this machine: "
  verify "$plugins/cuda_kernel.so"
  check "a CUDA kernel without a GPU is trouble with the machine" is "$status" 3
  check "with one line" is "$(wc -l <"$scratch/err.txt")" 1
  check "that says why" has "$err" "the plugin's kernel 'test_plugin' needs a GPU: "
fi

echo "$passes passed, $failures failed"
[ "$failures" -eq 0 ]
