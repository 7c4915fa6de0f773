#!/usr/bin/env bash
# `attest errors`: what it prints and records, and what it says to bad input. Argument: the binary.
set -u
attest=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 3
failures=0
check() {  # name, command...
  local name=$1; shift
  if "$@" >check 2>&1; then echo "passed: $name"; else echo "FAILED: $name"; cat check; failures=$((failures + 1)); fi
}
has() { grep -qE -- "$2" "$1" || { echo "'$2' is not in:"; cat "$1"; return 1; }; }
refused() {  # message, arguments...
  local message=$1; shift
  "$attest" errors "$@" >printed 2>err
  local code=$?
  [ $code -eq 2 ] && [ ! -s printed ] && [ "$(grep -c '^attest:' err)" -eq 1 ] && has err "$message"
}

"$attest" errors --kernel 'emulated_mma_sm90,k7*' --executor auto --family normal --family real --sets 2 \
  --problem 'b1 h2 n65 d64 causal_top_left' >table 2>/dev/null
check "it measures" [ $? -eq 0 ]
check "O and LSE of each kernel and precision" has table 'emulated_mma_sm90 +cpu +bf16 +LSE '
check "a table for each kind of inputs" [ "$(grep -c 'inputs real, 2 data sets' table)" -eq 1 ]
check "two records a row, two families, three precisions" [ "$(wc -l <out/errors.jsonl)" -eq 12 ]
check "with provenance" has out/errors.jsonl '"commit"'
"$attest" errors --kernel emulated_mma_sm90 --family outliers:10 --problem 'b1 h2 n65 d64 fp16' --json >json 2>/dev/null
check "an element type in the problem leaves out the others" [ "$(wc -l <json)" -eq 2 ]
check "the magnitude is recorded" has json '"inputs":"outliers:10"'
"$attest" errors --kernel emulated_mma_sm90 --problem 'b1 h1 n65 d64 fp16' --family normal --json >again 2>/dev/null
"$attest" errors --kernel emulated_mma_sm90 --problem 'b1 h1 n65 d64 fp16' --family normal --json 2>/dev/null |
  sed 's/"date":"[^"]*"//' >again2
check "the same seed gives the same figures" diff <(sed 's/"date":"[^"]*"//' again) again2
"$attest" errors --kernel 'emulated_mma_sm90,k7*' --problem 'b1 h1 n65 d64 fp16' --family normal >typed 2>/dev/null
check "kernels without the element type have no row" [ "$(grep -c k7 typed)" -eq 0 ]
check "an unknown family is named" refused "input family 'nothing' is unknown; allowed: normal" --family nothing
check "a magnitude must be a number" refused "magnitude '1x'; allowed: a number above 0" --family normal:1x
check "captured layers have captured lengths" refused "real" --family real --problem 'b1 h1 n4096 d64' --kernel emulated_fma
check "no kernel of that type" refused "no selected kernel takes its element type" --kernel 'k7*' --problem 'n16 d64 bf16'
check "a plan that no kernel takes" refused "no selected kernel can run" --kernel 'k7*' --problem 'n16 d64' --plan qt7 --family normal
[ $failures -eq 0 ] && echo "all passed"
exit $((failures > 0))
