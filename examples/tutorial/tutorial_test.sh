#!/usr/bin/env bash
# Every chapter does what the README says of it. Arguments: the source tree, attest-tutorial.
set -u
tree=$1 attest=$2
source "$tree/tests/checks.sh"
says() { grep -qE -- "$1" said || { echo "'$1' is not in:"; cat said; return 1; }; }

"$attest" verify --kernel 'tutorial_*' --operation forward --cases 40 --no-regressions >said 2>/dev/null
check "1: a kernel that forgets a key fails the campaign" [ $? -eq 1 ]
check "1: the right one passes" says '^tutorial_two_pass +cpu .* passed$'
check "1: the wrong one shrinks to 41 keys of one head" says '^  problem +b1 h1/1 q1 k41 d1 '
"$attest" verify --kernel 'o2*,o5*' --law reversed_queries --cases 8 --no-regressions >said 2>/dev/null
check "2: right kernels obey the law" [ $? -eq 0 ]
check "2: it was asked" says '^o5_deferred +cpu +8 +[1-8] '
"$attest" errors --kernel o5_deferred --family staircase --problem 'b1 h1 n65 d16 fp32' >said 2>/dev/null
check "3: the inputs are there" [ $? -eq 0 ]
check "3: and are named" says 'inputs staircase'
"$attest" verify --kernel tutorial_add_bias --cases 40 --no-regressions >said 2>/dev/null
check "4: a kernel of the operation passes" [ $? -eq 0 ]
"$attest" study run "$tree/examples/tutorial/5_study.yaml" --out out >said 2>/dev/null
check "5: the study is answered" [ $? -eq 0 ]
check "5: as expected" [ "$(grep -c '^holds ' said)" -eq 2 ]
[ $failures -eq 0 ] && echo "all passed"
exit $((failures > 0))
