#!/usr/bin/env bash
# `attest claims`: what it prints, and how it ends when a verdict no longer stands. Arguments: the source tree, the binary.
set -u
tree=$1 attest=$2
source "${BASH_SOURCE[0]%/*}/checks.sh"
has() { grep -qE -- "$2" "$1" || { echo "'$2' is not in:"; cat "$1"; return 1; }; }

mkdir -p copy/experiments && cp -r "$tree/experiments/claims" copy/experiments/
records=$tree/experiments/results
"$attest" claims --tree copy --records "$records" --id 'Q0.1,K5' >printed 2>err
check "it passes" [ $? -eq 0 ]
check "a claim with its figures" has printed 'ours +67.1 MB, 2.15 GB'
check "and its verdict" has printed 'verdict +reproduced'
check "a kernel of the ledger" has printed 'where +k5_padded_tiles'
check "how many verdicts were checked" has printed '^2 rows, 1 verdict checked$'
"$attest" claims --tree copy --records "$records" --id Q0.4a --json >json 2>err
check "JSON" python3 -c 'import json; row = json.loads(open("json").read()); assert row["found"] == row["verdict"] == "reproduced", row'
"$attest" claims --tree copy --records nowhere --id 'Q0.1,Q0.4a,Q3.31' >printed 2>err
check "records that are not there are no regression" [ $? -eq 0 ]
check "but are said to be missing" has printed 'checked, 2 without their records'

sed -i "s/rounds_to(head, '67')/rounds_to(head, '68')/" copy/experiments/claims/s0_triton_post.yaml
"$attest" claims --tree copy --records "$records" --id 'Q0.*' >printed 2>err
check "a verdict that no longer stands fails" [ $? -eq 1 ]
check "with its id" has err 'claim Q0.1 no longer has the verdict'
check "and in the table" has printed 'refuted, NOT reproduced'
refused() { refuses 2 "$1" "$attest" claims "${@:2}"; }  # message, arguments...
check "an unknown id is refused" refused "matches no id" --tree copy --id 'Y*'
echo 'rows: [{id: K1}]' >copy/experiments/claims/zz.yaml
check "a ledger with a mistake is refused with file and line" refused "zz.yaml:1: K1: a row needs 'what'" --tree copy
[ $failures -eq 0 ] && echo "all passed"
exit $((failures > 0))
