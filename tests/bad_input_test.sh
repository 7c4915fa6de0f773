#!/usr/bin/env bash
# Bad values of every subcommand and option: each gives exit code 2, nothing on stdout, and one line that names what is wrong.
# Arguments: the binary, and one with planted bugs. What a subcommand has to say beside stands in its own test.
set -u
attest=$1
with_mutants=$2
tree=$(cd -- "${BASH_SOURCE[0]%/*}/.." && pwd)
source "${BASH_SOURCE[0]%/*}/checks.sh"
mkdir folder
mkfifo pipe
recorded=$tree/verify/regressions/few_keys_move_all_columns.json
sed 's/"query_tile": 16/"query_tile": 17/' "$recorded" >plan.json
sed -z 's/"plan": {[^}]*}/"plan": {}/; s/f_controlled_pairs/m6_every_shape/; s/"simt"/"cpu"/' "$recorded" >no_plan.json
printf 'question: caf\xe9?\nkernels: k1_naive\n' >latin1.yaml
printf 'question: Q?\nkernels: k1_naive\ntarget_confidence: 200%%\n' >confident.yaml
printf 'question: Q?\nkernels: k1_naive\nmetrics: [error.rsme]\n' >metric.yaml
printf 'question: Q?\nkernels: k1_naive\nclaims: [Q0.1, Z99]\n' >claim.yaml

# Part of the line | arguments. Words of arguments are split by the shell's rules.
table() {
  cat <<'END'
--kernel 'k2_typo' matches no kernel; see attest list kernels | verify --kernel k1_naive,k2_typo
--kernel 'k1_niave' matches no kernel; near: k1_naive | verify --kernel k1_niave
--law 'within_bond' matches no law; near: within_bound | verify --law 'guards*,within_bond'
--family 'normel' matches no input family; near: normal | verify --family normal,normel
--law 'dk_*' and --family '*' match nothing | verify --kernel o5_deferred --law 'dk_*'
--law 'dk_*' and --family '*' match nothing | verify --operation combine --law 'dk_*'
operation 'combin' is unknown; allowed: backward, combine, forward | verify --operation combin
--executor is 'tpu'; allowed: auto, gpu, simt, cpu | verify --executor tpu
not in range 0 to 18446744073709551615 | verify --seed 18446744073709551616
not in range 0 to 18446744073709551615 | verify --seed -1
not in range 0 to 18446744073709551615 | verify --seed 0x1
--memory-limit is '1KiB'; allowed: a size with its unit | verify --memory-limit 1KiB
--timeout is '5'; allowed: a positive time with its unit | verify --timeout 5
--for is '10'; allowed: a positive time with its unit, such as 60s, 5min or 1h | verify --for 10
--for and --cases are both given; allowed: one of them | verify --for 10s --cases 5
--cases and --thorough are both given; allowed: one of them | verify --thorough --cases 5
--for and --thorough are both given; allowed: one of them | verify --thorough --for 5s
--out is ''; allowed: what attest verify --help says | verify --out ""
--operation is ''; allowed: what attest verify --help says | verify --operation ''
--for is ''; allowed: what attest verify --help says | verify --for ''
--inputs is ''; allowed: what attest errors --help says | errors --inputs ''
--operation is ''; allowed: what attest bench --help says | bench --operation ''
--shard is ''; allowed: what attest study run --help says | study run block_size --shard ''
--shard is '3/2'; allowed: i/n | verify --shard 3/2
--jobs | verify --jobs 0
--cases | verify --cases 0
--max-len | verify --max-len 0
--lengths | verify --lengths nothing:1
: not a file | replay folder
plan.json: 'plan' is 'qt17 | replay plan.json
allowed: what f_controlled_pairs offers for the problem: qt | replay plan.json
no_plan.json: 'plan' is '-'; allowed: what m6_every_shape offers for the problem: | replay no_plan.json
no_plan.json: 'plan' is '-'; allowed: what m6_every_shape offers for the problem: | verify --minimize no_plan.json
: not a file | replay nothing.json
: not a file | replay pipe
/proc/self/mem: cannot be read: Input/output error | replay /proc/self/mem
plan field 'query_tile' is '0'; allowed: a whole number from 1 | explain k1_naive --plan qt0
plan: 'x9' is unknown | explain k1_naive --plan x9
--problem is ''; allowed: what attest explain --help says | explain k1_naive --problem ''
problem: it is empty | explain k1_naive --problem ' '
--entry is 2; allowed: 0 to 1, the batch of 'b2 | show --problem 'b2 n4' --entry 2
--problem has 200000 queries and 200000 keys; allowed: 4294967296 pairs | show --problem 'n200000'
--problem 'n16 backward' asks for backward; allowed: forward | explain k1_naive --problem 'n16 backward'
problem field 'shared_keys' is 5000; allowed: 0 to key_len, 4096 | explain k1_naive --problem 'b8 n4096 shared5000'
--problem 'n16 d8 combine' asks for combine; allowed: backward | bench --operation backward --problem 'n16 d8 combine'
--problem 'forward n16 d8' asks for forward; allowed: backward | bench --operation backward --problem 'forward n16 d8'
problem: 'b9' gives batch a second time | explain k1_naive --problem 'b8 b9'
problem: 'q4' gives query_len a second time | explain k1_naive --problem 'n8 q4'
kernel 'k1_niave' is unknown | explain k1_niave
problem: 'caussal' is unknown; near: causal_top_left, causal_bottom_right | explain k1_naive --problem 'n8 caussal'
none or causal_top_left or causal_bottom_right | explain k1_naive --problem 'n8 diagonal'
on --device a100: it takes instructions of sm_90, and A100 SXM, 80 GB is sm_80 | explain fa3_wgmma --device a100
on --device t4: it takes instructions of sm_80, and T4 is sm_75 | explain k10_wide_tiles --device t4
--layouts: paging 'page16': part 'page16' is unknown; allowed: paged16, csr | explain k1_naive --layouts page16
k1_naive: it takes no K and V in pages | explain k1_naive --layouts paged16
device 'b200' is unknown | explain k1_naive --device b200
link 'nvlink9' is unknown; allowed: nvlink4, nvlink3 | explain n3_ring --link nvlink9
--link is about kernels of several ranks such as n3_ring; k1_naive has none | explain k1_naive --link ndr
--rate is about kernels of several ranks | explain k1_naive --rate 500
--rate is 0; allowed: TFLOP/s above 0 | explain n3_ring --rate 0
plan field 'ranks' is 5000; allowed by the model of ranks: 1 to 4096 | explain n3_ring --plan r5000
--fit is '9'; allowed: a size with its unit | explain --fit 9 --head-dim 64
no element of the exact answer to 'b1 h1/1 q16 k16 d8 none fp32' with inputs normal:1e+40 | errors --kernel o5_deferred --family normal:1e40 --problem 'n16 d8'
--mask requires --outputs | errors --kernel o5_deferred --mask causal_top_left
--out is ''; allowed: what attest errors --help says | errors --kernel o5_deferred --out ""
input family 'normel' is unknown; allowed: normal | errors --kernel o5_deferred --family normal,normel --problem 'n16 d8'
key order 'up'; allowed: drawn | errors --kernel o5_deferred --key-order drawn,up --family normal --problem 'n16 d8'
--by: column not in {row,head} | errors --kernel o5_deferred --by row,column
--kernel 'k2_typo' matches no kernel | errors --kernel k1_naive --kernel k2_typo
nothing: no such file or shipped study | study check nothing
block_siz: no such file or shipped study; near: block_size | study check block_siz
/dev/zero: is no regular file | study check /dev/zero
pipe: is no regular file | study check pipe
folder: is no regular file | study check folder
latin1.yaml:1:1: the line is not UTF-8 | study check latin1.yaml
confident.yaml:3:20: 'target_confidence' is 200%; allowed: above 0% and below 100% | study check confident.yaml
claim.yaml: 'claims' has 'Z99', no id of the ledger; see attest claims | study check claim.yaml
metric.yaml:3:11: 'metrics' is 'error.rsme' | study check metric.yaml
--time-budget is 'never'; allowed: a positive time | study run block_size --time-budget never
--id 'Z99' matches no id of the ledger | claims --id Z99 --tree TREE
there is no ledger (*.yaml) in nope | claims --tree nope
--json excludes --markdown | claims --json --markdown
mutants: this program has no planted bugs; attest-mutants has them | mutants
--kernel 'mutant/*': this program has no planted bugs | verify --kernel 'mutant/*'
c39_output_not_rescaled.json: this program has no planted bugs | replay TREE/verify/regressions/c39_output_not_rescaled.json
--jobs | mutants --jobs 0
--kernel 'k99' matches no kernel | tune --kernel k99 --suite fa3
'fa9' is unknown | tune --suite fa9
'fa9' is unknown | bench --suite quick,fa9
--kernel 'k99' matches no kernel | bench --kernel k99 --executor cpu
--kernel 'k99' matches no kernel | calibrate --kernel k99
--sets | calibrate --sets 0
--operation 'combine' has no statistics | calibrate --operation combine
--family 'normal': the statistics of gradients choose their inputs | calibrate --operation backward --family normal
what: lws not in | list lws
help: 'lws' is no topic; allowed: laws, judging, | help lws
'verfy' is no subcommand; near: verify | verfy
END
}

while IFS='|' read -r message arguments; do
  message=${message% }
  eval "words=(${arguments//TREE/\"\$tree\"})"
  check "$arguments" refuses 2 "$message" "$attest" "${words[@]}"
done < <(table)
check "no mutant" refuses 2 "--kernel is ''; allowed: what attest mutants --help says" "$with_mutants" mutants --kills --kernel ''
check "a list with an empty name" refuses 2 "--kernel '' matches no mutant; see attest list mutants" "$with_mutants" mutants --kills --kernel 'mutant/c05*,'
check "a mutant that is not there" refuses 2 "--kernel 'mutant/zz*' matches no mutant" "$with_mutants" mutants --kernel 'mutant/zz*'
check "and nothing is left behind" [ ! -e out ]

# The launcher knows the program's subcommands without it.
eval "$(grep '^program_subcommands=' "$tree/attest")"
check "the launcher has the program's subcommands" diff <(tr ' ' '\n' <<<"$program_subcommands" | grep -v worker) \
  <("$attest" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
check "a version" grep -qE '^attest at commit [0-9a-f]{12}' <("$attest" --version)

# A pipe from another command ends, whatever its name.
printf 'question: Q?\nkernels: k1_naive\n' >good.yaml
from_pipe() { "$attest" study check "$1" <&0 | grep -qF '1 point of k1_naive'; }
check "a study from standard input" from_pipe /dev/stdin < <(cat good.yaml)
check "a study from a command" from_pipe <(cat good.yaml)

# Where nothing can be written it is the machine's fault.
on_full_disk() { "$attest" "$@" >/dev/full 2>err; [ $? -eq 3 ] && [ "$(wc -l <err)" -eq 1 ]; }
check "a full disk: list" on_full_disk list laws
check "a full disk: help" on_full_disk verify --help
check "a full disk: explain" on_full_disk explain k1_naive --problem 'n16 d8'
exit $((failures > 0))
