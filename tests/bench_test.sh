#!/usr/bin/env bash
# `attest bench`: what it says to bad input and without a GPU, and its exit codes. Argument: the binary.
set -u
attest=$1
source "${BASH_SOURCE[0]%/*}/checks.sh"
refused() { refuses "$1" "$2" "$attest" bench "${@:3}"; }  # exit code, message, arguments...
small=(--kernel o2_three_pass --problem 'b1 h1 n9 d8 fp32')
times() { "$attest" bench --executor cpu "${small[@]}" --benchmark_min_time=0.001 "$@" >out 2>err; }

if "$attest" doctor | grep '^build' | grep -q sanitizers; then
  check "a build with sanitizers times nothing" refused 3 "bench times Release builds only; this one has sanitizers"
  exit $((failures > 0))
fi
check "a problem must be readable" refused 2 "'x7' is unknown" --problem 'n64 x7'
check "a suite must exist" refused 2 "'fa9' is unknown; allowed: fa3" --suite fa9
for bad in repetitions=-1 repetitions=0 min_time=never min_warmup_time=-1; do
  check "--benchmark_$bad is refused" refused 2 "--benchmark_${bad%%=*}='${bad#*=}'; allowed" --executor cpu "--benchmark_$bad"
done
check "a kernel must exist" refused 2 "--kernel 'k99*' matches no kernel" --executor cpu --kernel 'k99*'
check "an executor must exist" refused 2 "--executor is 'tpu'" --executor tpu
check "an argument must be known" refused 2 "'--rounds=3' is unknown" --rounds=3
check "a format must be known" refused 2 "'xml' is unknown; allowed: console, json, csv" --benchmark_format=xml
check "a filter must be a regular expression" refused 2 "no regular expression" "--benchmark_filter=("
check "some kernel must run the problem" refused 2 "none of the kernels runs any of the problems" --executor cpu \
  --kernel o2_three_pass --problem 'b1 h1 n9 d8 fp32 dv4'
check "a kernel is timed" times --benchmark_format=json
check "the rest of stdout is JSON, with FLOP/s and the commit" \
  python3 -c 'import json; r = json.load(open("out")); assert r["benchmarks"][0]["FLOP/s"] > 0 and r["context"]["commit"]'
check "the list of points runs none of them" times --benchmark_list_tests
check "and names them" grep -q '^o2_three_pass on cpu/b1 h1/1 q9 k9 d8 none fp32/manual_time$' out
gradients() {
  "$attest" bench --executor cpu --kernel backward_standard "$@" --benchmark_min_time=0.001 --benchmark_format=json >out 2>err &&
    python3 -c 'import json; r = json.load(open("out"))["benchmarks"]; assert len(r) == 1 and r[0]["FLOP/s"] > 0 and "error_occurred" not in r[0]'
}
check "gradients are timed" gradients --operation backward --problem 'b1 h2/1 n9 d8 causal_top_left fp32'
check "a problem may say its operation" gradients --problem 'b1 h2/1 n9 d8 fp32 backward'
check "but all say the same" refused 2 "problems ask for forward and for backward" --executor cpu --problem n9 --problem 'n9 backward'
codes() {
  "$attest" bench --executor cpu --operation quantise --problem 'b1 h2/1 n9 d8 bf16 kscales_row' --benchmark_min_time=0.001 --benchmark_format=json >out 2>err &&
    python3 -c 'import json; r = json.load(open("out"))["benchmarks"]; assert len(r) == 1 and r[0]["B/s"] > r[0]["FLOP/s"] > 0 and "error_occurred" not in r[0]'
}
check "codes are timed, with a rate of bytes" codes
check "an operation must exist" refused 2 "operation 'backwards' is unknown; allowed: backward" --operation backwards
check "an operation must take the inputs that are timed" refused 2 "gets inputs of family 'normal'" --executor cpu --operation combine
nothing() { times --benchmark_filter=nothing; [ $? -eq 2 ] && grep -q 'matches no kernel and problem' err; }
check "a filter must match" nothing
if "$attest" doctor | grep -q '^gpu *not available'; then
  "$attest" bench "${small[@]}" --benchmark_min_time=0.001 >out 2>err
  check "without a GPU it says whose time it is" grep -q "no usable GPU .*: kernels of the CPU, by the host's time" err
  check "and labels it" grep -q 'time of the host$' out
fi
check "help says how" sh -c "'$attest' bench --help | grep -q -- --benchmark_filter"
[ $failures -eq 0 ]
