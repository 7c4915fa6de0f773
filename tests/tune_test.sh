#!/usr/bin/env bash
# `attest tune`: what it says to bad input and without a GPU. Argument: the binary.
set -u
attest=$1
source "${BASH_SOURCE[0]%/*}/checks.sh"
refused() { refuses "$1" "$2" "$attest" tune "${@:3}"; }  # exit code, message, arguments...

check "a problem is needed" refused 2 "no problem is given"
check "a problem must be readable" refused 2 "'x7' is unknown" --problem 'n64 x7'
check "a suite must exist" refused 2 "'fa9' is unknown; allowed: fa3" --suite fa9
check "a kernel must exist" refused 2 "--kernel 'k99*' matches no kernel" --suite fa3 --kernel 'k99*'
echo '{"schema": 1, "rows": [{"kernel": 3}]}' >bad.json
check "a malformed table is named with row and field" refused 2 "bad.json: row 1: 'kernel' is 3" --suite fa3 --out bad.json
check "and stays as it is" grep -q '"kernel": 3' bad.json
if "$attest" doctor | grep -q '^gpu *not available'; then
  check "it needs a GPU" refused 3 "tune needs a GPU: " --suite fa3
  check "and writes nothing without one" [ ! -e out/tuned_plans.json ]
fi
check "help says how" sh -c "'$attest' tune --help | grep -q 'attest tune --suite fa3'"
check "doctor counts default Plans" sh -c "'$attest' doctor | grep -q '^tuned .*efault Plans'"
[ $failures -eq 0 ]
