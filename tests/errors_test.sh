#!/usr/bin/env bash
# `attest errors`: what it prints and records, and what it says to bad input. Argument: the binary.
set -u
attest=$1
source "${BASH_SOURCE[0]%/*}/checks.sh"
has() { grep -qE -- "$2" "$1" || { echo "'$2' is not in:"; cat "$1"; return 1; }; }
refused() { refuses 2 "$1" "$attest" errors "${@:2}"; }  # message, arguments...

"$attest" errors --kernel 'emulated_mma_sm90,k7*' --executor auto --family normal --family real --sets 2 \
  --problem 'b1 h2 n65 d64 causal_top_left' >table 2>/dev/null
check "it measures" [ $? -eq 0 ]
check "O and LSE of each kernel and precision" has table 'emulated_mma_sm90 +cpu +bf16 +LSE '
check "no line is wider than 100 columns" [ "$(awk 'length > 100' table | wc -l)" -eq 0 ]
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
check "rows that do not exist are not counted as right" refused "has lengths" --problem 'b2 n16 d64 lengths1' --kernel 'o5*'
check "no rows, no figures" refused "has no rows" --problem 'q0 k4 d64' --kernel 'o5*'
check "captured layers have captured lengths" refused "real" --family real --problem 'b1 h1 n4096 d64' --kernel emulated_fma
check "no kernel of that type" refused "no selected kernel takes its element type" --kernel 'k7*' --problem 'n16 d64 bf16'
check "a plan that no kernel takes" refused "no selected kernel can run" --kernel 'k7*' --problem 'n16 d64' --plan qt7 --family normal
small() { "$attest" errors --kernel emulated_mma_sm90 --sets 1 --json "$@" 2>/dev/null; }
small --problem 'h{1,2} n{17,33} d16 fp16' --family 'normal:{1,4}' --plan 'kt{16,32}' >lists
check "lists in braces stand for every combination: 2 x 2 x 2 x 2, of O and of LSE" [ "$(wc -l <lists)" -eq 32 ]
check "none of them twice" [ "$(grep -o '"inputs":"[^"]*","key[^}]*' lists | sort -u | wc -l)" -eq 32 ]
small --problem 'h2 n9 d16 fp16' --family normal --by row --by head --map >parts
check "parts: rows 0, 1, 2-3, 4-7, 8 and two heads, of O and of LSE" [ "$(grep -c '"by":' parts)" -eq 14 ]
check "and one map, of O" [ "$(grep -c '"kind":"error_map"' parts)" -eq 1 ]
small --problem 'h3/1 n65 d64 causal_top_left fp16' --family 'smollm2.*' >layers
check "a glob takes the captured layers that fit, O and LSE" [ "$(grep -c '"inputs":"smollm2.layer' layers)" -eq 8 ]
small --problem 'h3/1 q{1,8} k65 d64 causal_bottom_right fp16' --family smollm2.layer18 >steps
check "a captured layer serves steps of decoding" [ "$(grep -c '"inputs":"smollm2.layer18"' steps)" -eq 4 ]
"$attest" errors --kernel emulated_mma_sm90 --json --problem "h3/1 n65 d64 causal_top_left fp16" --family smollm2.layer0 --sets 3 >once 2>/dev/null
check "the same data is not counted several times" has once '"name":"sets","value":1.0'
small --problem 'h1 n33 d16 fp16' --family normal --key-order drawn --key-order rising >orders
small --problem 'h1 n9 d16 fp16' --family 'normal:{1,4}' --family constant_v --key-order drawn --key-order rising --by row --by head >repeated
small --problem 'h1 n9 d16 fp16' --family 'normal:{1,4},constant_v' --key-order drawn,rising --by row,head >listed
figures() { grep -o '"inputs".*"measurements":.*' "$1" | sed 's/"provenance".*//'; }
check "a list with commas says what repeating the option says" [ -n "$(figures listed)" -a "$(figures listed)" = "$(figures repeated)" ]
check "key orders differ in their errors" [ "$(grep -o '"rmse","value":[^,]*' orders | sort -u | wc -l)" -eq 4 ]
small --problem 'h1 n33 d16 fp16' --family normal --plan key_splits=2 >changed
small --problem 'h1 n33 d16 bf16' --family normal >rounded
small --problem 'h1 n33 d16 bf16' --family normal --unrounded >unrounded
rmse() { grep '"tensor":"O"' "$1" | grep -o '"name":"rmse","value":[^,]*' | cut -d: -f3; }
check "the inputs' rounding counts if asked for" awk "BEGIN{exit !($(rmse unrounded) > $(rmse rounded))}"
check "without a bound, and named" has unrounded '"inputs":"normal_unrounded"'
check "which it has not" [ "$(grep -c error_over_bound unrounded)" -eq 0 ]
check "fields of a plan change the default" has changed '"plan":"kt[0-9]+ key_splits=2|"plan":"kt[0-9]+ ks2'
check "a brace without its partner" refused "'n{64' has a brace" --problem 'n{64' --kernel 'o5*'
check "a glob without a family" refused "matches no family" --family 'nothing*' --kernel 'o5*'
check "an order that is none" refused "key order 'up'; allowed: drawn" --key-order up --kernel 'o5*' --family normal
check "an order under a mask" refused "would change the answer" --key-order rising --kernel 'o5*' --family normal --problem 'n16 d16 causal_top_left'
gradients() { "$attest" errors --operation backward --sets 1 --family normal "$@" 2>/dev/null; }
gradients --problem 'b1 h2 n65 d64' >gradient_table
check "gradients are measured of kernels that run without a GPU" [ $? -eq 0 ]
check "in no more than 100 columns" [ "$(awk 'length > 100' gradient_table | wc -l)" -eq 0 ]
check "dQ, dK and dV of backward kernels, each in its formats" \
  [ "$(grep -cE '^(backward_tiled|bwd_simple|bwd_wgmma) +(cpu|simt|gpu) +(fp32|fp16|bf16) d[QKV] .*\]$' gradient_table)" -eq 24 ]
check "and each once more, by its distribution" [ "$(grep -cE ' d[QKV] .*[0-9]$' gradient_table)" -eq 24 ]
check "which a problem may ask for too" has <("$attest" errors --sets 1 --kernel backward_tiled --family normal --problem 'n9 d16 bf16 backward' 2>&1) 'bf16 dK '
gradients --problem 'b1 h2/1 n65 d16' --kernel 'choice/*' --json >choices
check "what each of twelve sets of roundings costs, in two formats" [ "$(grep -o '"contender":"choice/bwd_[^}]*' choices | sort -u | wc -l)" -eq 72 ]
check "records say that they are of gradients" [ "$(grep -c '"problem":"[^"]* backward"' choices)" -eq 72 ]
gradients --problem 'h1 n33 d16 bf16' --kernel choice/bwd_nothing_rounded --json --exact-saved >exact_saved
check "held against the gradient there is no bound" [ "$(grep -c error_over_bound exact_saved)" -eq 0 ]
check "and the inputs say so" has exact_saved '"inputs":"normal_exact_saved"'
"$attest" errors --operation backward --kernel backward_tiled --sets 1 --family gradient_zero --problem 'h1 n33 d16' >zero 2>/dev/null
check "no gradient, no error" [ "$(grep -cE ' d[QKV] +0 +(0|nan) +0 ' zero)" -eq 9 ]
check "an operation that is none" refused "operation 'sideways' is unknown; allowed: backward, combine, forward" --operation sideways
check "a kernel's own operation is asked for" grep -q ' dQ ' <("$attest" errors --kernel backward_tiled --family normal --sets 1 2>/dev/null)
check "if its errors are measured" refused "operation combine: its errors are not measured; allowed: forward, backward" --kernel combine_parts
check "a kernel without answers" refused "read_once gives no answer to judge" --kernel read_once
check "one whose errors are not measured" refused "allowed: forward, backward" --operation combine
check "outputs in a file are O and LSE" refused "--outputs holds O and LSE" --operation backward --outputs file
check "inputs of another operation" refused "fills inputs of combine; allowed: families of backward" --operation backward --family partial_normal
check "a kernel of another operation" refused "matches no kernel of backward" --operation backward --kernel k7_shuffled_rows
check "two operations at once" refused "allowed: one operation" --problem 'n9 d16' --problem 'n9 d16 backward'
check "no forward pass has an O to be given" refused "no input of forward is the output of another operation" --exact-saved
check "one truth at a time" refused "--unrounded" --operation backward --exact-saved --unrounded
check "keys in another order have other rows of dK" refused "has outputs with a row a key; allowed: drawn, reversed" --operation backward --unrounded --key-order rising
# One key: O is its value, LSE the score. `off` is one fp16 step from 1.5 in one element of four.
python3 - <<'PYTHON'
import json, struct
def tensors(file, rows):
    header, data = {}, b""
    for name, dtype, shape, values in rows:
        part = struct.pack(f"<{len(values)}{'e' if dtype == 'F16' else 'f'}", *values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    open(file, "wb").write(struct.pack("<Q", len(text)) + text + data)
v = [1.5, -2.0]
layer = [("one.q", "F16", [1, 1, 2, 2], [1, 0, 0, 0]), ("one.k", "F16", [1, 1, 1, 2], [0, 1]), ("one.v", "F16", [1, 1, 1, 2], v)]
right = [("one.right.o", "F16", [1, 1, 2, 2], v + v), ("one.right.lse", "F32", [1, 1, 2], [0, 0])]
off = [("one.off.o", "F16", [1, 1, 2, 2], v + [1.5 + 2**-10, -2.0])]
tensors("file", layer + right + off)
tensors("no_outputs", layer)
tensors("bad_shape", layer + [("one.x.o", "F16", [1, 1, 2, 1], [1, 2])])
tensors("nan", layer + [("one.x.o", "F16", [1, 1, 2, 2], v + [float("nan"), -2.0])])
PYTHON
"$attest" errors --outputs file >file_table 2>&1
check "it judges outputs in a file" [ $? -eq 0 ]
check "O of one key is its value" has file_table '^right +file fp16 O +0 +0 +0 .*\[0, 0, 0, 0\]$'
check "which is the correctly rounded one" has file_table '^right +file fp16 O +100.00'
check "and LSE its score" has file_table '^right +file fp16 LSE +0 +0 +0 '
check "one of four elements is one step off, by 2^-10" has file_table '^off +file fp16 O +0.000488 +0.000276 +0.000977 .*\[0, 0, 1, 0\]$'
check "and one ulp" has file_table '^off +file fp16 O +75.00 +25.00 +0.00'
"$attest" errors --outputs nan >nan_table 2>&1
check "a NaN is not overlooked" has nan_table '^x +file fp16 O +nan +nan +nan .*\[0, 0, 1, 0\]'
check "a file without outputs is refused" refused "no tensor is called WHO.o" --outputs no_outputs
check "and one whose O has another shape" refused "one.x.o' has shape [1, 1, 2, 1]; allowed: [1, 1, 2, 2]" --outputs bad_shape
check "and a mask that does not exist" refused "mask" --outputs file --mask sideways
# What is beyond its bound is marked and fails; what has no bound cannot be.
check "a table of correct kernels marks nothing" [ "$(grep -c 'beyond its bound' table)" -eq 0 ]
check "nor do their records" [ "$(grep -c '"verdict":"failed"' out/errors.jsonl)" -eq 0 ]
wrong() { "$attest" errors --kernel o1_unshifted --family equal_huge_logits --problem 'h1 n9 d8 fp32' --sets 1 --out wrong "$@"; }
wrong >wrong_table 2>/dev/null
check "a wrong kernel ends with 1" [ $? -eq 1 ]
check "its row is marked" has wrong_table '^o1_unshifted +cpu +fp32 O .* beyond its bound$'
check "and it is said last" [ "$(tail -n 1 wrong_table | grep -c '^FAILED: 1 of 1 row is beyond its bound')" -eq 1 ]
check "its record says failed" [ "$(grep -c '"verdict":"failed"' wrong/errors.jsonl)" -ge 1 ]
wrong --json >wrong_json 2>/dev/null
check "in JSON as well" [ $? -eq 1 ]
check "which is nothing but records" [ "$(grep -vc '^{' wrong_json)" -eq 0 ]
check "with the verdict" has wrong_json '"verdict":"failed"'
# A file of inputs: what is measured, or a family that asks for it; never ignored.
own() { "$attest" errors --kernel emulated_mma_sm90 --sets 1 --problem 'h1 q2 k1 d2 fp16' --inputs layer "$@"; }
cp no_outputs layer
own --json >own 2>own.err
check "inputs of a file are what is measured where no family is named" [ "$(grep -c '"inputs":"file"' own)-$(wc -l <own)" = 2-2 ]
check "a layer of it may be asked for by name" has <(own --family one --json 2>/dev/null) '"inputs":"one"'
check "and other families beside it" [ "$(own --family normal --family 'f*' --json 2>/dev/null | wc -l)" -eq 4 ]
check "a file that no family asks for is bad input" refused "--inputs layer: no --family asks for it; allowed: file, one" --inputs layer --family normal --problem 'h1 q2 k1 d2 fp16'
check "in a campaign neither" refuses 2 "--inputs layer: --family 'normal' does not ask for it; allowed: file" "$attest" verify --inputs layer --family normal
check "outputs in a file take no kernel beside them" refused "--outputs" --outputs file --kernel 'o5*'
check "nor other inputs" refused "--outputs" --outputs file --inputs layer
[ $failures -eq 0 ] && echo "all passed"
exit $((failures > 0))
