#!/usr/bin/env bash
# What `attest study run` writes is what `attest report` reads. Usage: study_report_test.sh ATTEST PYTHON
set -euo pipefail

attest=$1 python=$2
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
cd -- "$scratch"
cat >tiles.yaml <<'YAML'
question: Which tile makes the least work?
kernels: [k5_padded_tiles, k7_shuffled_rows]
problem: {batch: 1, heads: 1, length: [64, 128], head_dim: 32}
plan: {query_tile: [16, 32], key_tile: [16, 32]}
metrics: [time, error.rmse]
expect:
  - {that: min(model.fmas) > 0, because: attention multiplies}
plots:
  - {kind: heat_map, x: plan.key_tile, y: plan.query_tile, value: model.shared_passes, title: Passes by tile}
YAML
"$attest" study run tiles.yaml --executor simt --out results >log 2>&1 || { cat log; exit 1; }
report() { PYTHONPATH=$here "$python" -B -m attest_book report "$@"; }

failures=0
has() {  # title, file, text
  if grep -qF -- "$3" "$2"; then echo "passed: $1"; else failures=$((failures + 1)); echo "FAILED: $1: '$3' is not in $2"; fi
}
report results --out page.html >table
has "the answer is the expectation's" table "The expectation min(model.fmas) > 0 holds"
has "every point is in the table" table "16 points modelled, none timed"
has "the plot that the file asks for is drawn" page.html '"title": "key tile"'
has "floors of models are drawn" page.html "Time at best"
has "so is their roofline" page.html "Traffic comes from the model of the L2. Nothing was timed"
has "so is time against error" page.html "Nothing was timed: left is a lower floor of the time, by models"
has "the page says in which order points were taken" page.html "seed of the order</td><td>1</td></tr>"
report results results --out both.html >table
has "a folder differs from itself in nothing" table "0 of 16 matched points are slower in B, 0 faster"
report results results --fail-if-slower 3% --out both.html >table
has "and no point of it is slower than itself" table "0 points are slower by more than 3%"
sed -E '/"name":"model.(shared_passes|time_floor|dram_bytes)"/s/("name":"model\.(shared_passes|time_floor|dram_bytes)","value":)([0-9.e+-]+)/\1 9\3/g' results/records.jsonl >slower.jsonl
mkdir slower && cp results/study.yaml results/run.json slower/ && cp slower.jsonl slower/records.jsonl
status=0; report results slower --fail-if-slower 3% --out both.html >table || status=$?
has "a slower study fails" <(echo "status $status") "status 1"
has "and its worst point is named" table "points are slower by more than 3%, the worst: k"
status=0; report results --fail-if-slower 3% 2>table || status=$?
has "one folder cannot be slower than another" <(echo "status $status") "status 2"
report results results --fail-if-slower some 2>table || true
has "a share is a percentage" table "--fail-if-slower is 'some'; allowed: a share such as 3%"
"$attest" study run tiles.yaml --executor simt --out again --json >printed 2>said
has "JSON alone is printed" <("$python" -c 'import json,sys; print(len([json.loads(l) for l in open("printed")]) == len(open("again/records.jsonl").readlines()))') True
has "the rest is said" said "16 points of 2 kernels"
[ "$failures" -eq 0 ]
