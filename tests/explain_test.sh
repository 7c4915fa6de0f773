#!/usr/bin/env bash
# `attest explain`: the numbers of the founding documents' exercises, and what it says to bad input. Argument: the binary.
set -u
attest=$1
readme=$(cd -- "${BASH_SOURCE[0]%/*}/.." && pwd)/experiments/results/README.md
source "${BASH_SOURCE[0]%/*}/checks.sh"
has() { grep -qF -- "$2" "$1" || { echo "'$2' is not in:"; cat "$1"; return 1; }; }
refused() { refuses 2 "$1" "$attest" "${@:2}"; }  # message, arguments...

ladder='b8 h12 n4096 d64 causal_top_left'
"$attest" explain k3_sequence_parallel --problem "$ladder" --plan qt32,kt32 >k3 2>&1
check "it explains K3" [ $? -eq 0 ]
check "FLOP of visible pairs and of all" has k3 "2.062e+11 of visible pairs; 4.123e+11 if nothing were masked"
check "FLOP by whole tiles" has k3 "2.078e+11 by whole tiles: 792576 of 1572864 tile pairs"
check "the grid and the shared memory of the ledger" has k3 "grid 12288, 1024 threads, 28928 B of shared memory"
check "rows of K are 32 ways apart but for the diagonal" has k3 "31.8-way"
"$attest" explain k3_sequence_parallel --problem "$ladder" --plan qt32,kt32 --device a6000 >k3_a6000 2>&1
check "K3 fills two thirds of an A6000" has k3_a6000 "1 block an SM, 66.7 % of its warps"
"$attest" explain k1_naive --problem "$ladder" --plan qt32,kt32 >k1 2>&1
check "K1 has a block a head, and 36 SMs have none" has k1 "96 of 96 blocks; 36 SMs stay idle"
check "so an SM has one warp of K1 and not seven" has k1 "the grid fills 1.6 % of an SM's warps"
"$attest" explain k0_standard --problem 'n1024 d64' --plan qt64 --json >k0.json
check "the softmax of K0 reads S three times" has k0.json '"s_written":4194304.0,"s_read":12582912.0,"p_written":4194304.0,"p_read":4194304.0'
check "each thread of K1 reads its own row" has k1 "12 %"

# What the report of measurements shows of K5, but for lines left out. Registers are known where nvcc compiled the kernels.
"$attest" explain k5_padded_tiles --problem "$ladder" --plan qt32,kt32 >k5 2>&1
readme_shows() {
  local lines=0 line
  while IFS= read -r line; do
    if [[ $line == "    registers "* ]] && ! grep -q 'compiled for' k5; then continue; fi
    lines=$((lines + 1))
    has k5 "$line" || return 1
  done < <(sed -n '/^\$ .\/attest explain k5_padded_tiles/,/^```/{/^\$/d;/^```/d;/^  \.\.\.$/d;p}' "$readme")
  [ "$lines" -ge 15 ]
}
check "the report shows what it prints" readme_shows

# Q3.16, Q3.17: shared memory and occupancy of K5 and K6; A1: the conflicts that K4 has and K5 leaves.
for kernel in k4_register_tile k5_padded_tiles k6_sliced_dims; do
  "$attest" explain $kernel --problem "$ladder" --plan qt32,kt32 --device a6000 >${kernel%%_*}_a6000 2>&1
done
check "K4 reads rows of K 8 ways apart" has k4_a6000 "8-way"
check "K5 takes 28,928 bytes" has k5_a6000 "64 threads, 28928 B of shared memory"
check "and 12.5 % of an A6000" has k5_a6000 "3 blocks an SM, 12.5 % of its warps, limited by shared memory"
check "its Q is still read 4 ways apart" grep -qE 'shared 0-8192 .* 4-way' k5_a6000
check "K6 takes 20,736 bytes" has k6_a6000 "64 threads, 20736 B of shared memory"
check "and 16.7 % of an A6000" has k6_a6000 "4 blocks an SM, 16.7 % of its warps, limited by shared memory"

"$attest" explain k3_sequence_parallel --problem "$ladder" --plan qt32,kt32 --json >k3.json
check "one JSON object" [ "$(wc -l <k3.json)" -eq 1 ]
check "with numbers" has k3.json '"visited_tile_pairs_of_a_head":8256,"tile_pairs_of_a_head":16384'
check "and counters" has k3.json '"worst_ways":32'
# The L2 of an H100 at the shape of the Triton post, in fp32: bytes are twice the post's 1.5 and 64.5 GiB. Shared memory alone
# limits K10 to a block an SM, so a build that knows no registers says the same.
for order in q_fastest q_slowest; do
  "$attest" explain k10_wide_tiles --problem 'b8 h32 n8192 d128' --plan "qt128 kt128 dt128 tm8 tn8 w8 st2 grid_order=$order" \
    --device h100 >$order 2>&1
done
check "neighbouring blocks share K and V" grep -q 'L2 model  *3 GiB' q_fastest
check "blocks of all heads do not" grep -q 'L2 model  *129 GiB' q_slowest
# In a build with nvcc the machine code of every kernel says its registers; the executor launches the same instances.
knows_registers() {  # kernel, its first element type
  local shape="n100 d64"
  [[ $1 == fp8_* ]] && shape="n100 d64 qcode_e4m3"
  [[ $1 == mla_* ]] && shape="h4/1 n100 d576 dv512 values_in_keys"
  "$attest" explain "$1" --problem "$shape $2" >registers 2>&1 || { cat registers; return 1; }
  grep -q 'registers  *[0-9]' registers && ! grep -q 'registers  *not known' registers
}
"$attest" list kernels | awk '$2 == "gpu" { sub(",.*", "", $3); print $1, $3 }' >on_gpu
compiled=0
while read -r name type; do
  grep -q "^  $name  *simt" <("$attest" list kernels) || continue
  # Costs are those of attention: other operations have none.
  if "$attest" explain "$name" --problem "n100 d64 $type" 2>&1 | grep -q '^attest: explain is about attention'; then continue; fi
  check "registers of $name are known" knows_registers "$name" "$type"
  compiled=$((compiled + 1))
done <on_gpu
if grep -q gpu <("$attest" list kernels); then check "all kernels were asked" [ "$compiled" -ge 15 ]; fi

"$attest" explain o5_deferred --problem 'n4096 d128 fp16' >o5 2>&1
check "a kernel of the CPU has work and compulsory traffic" has o5 "3 MiB   1.016 MiB"
check "and says what is not known" has o5 "counters: not known: the kernel does not run on the SIMT executor"

"$attest" explain n3_ring --problem 'h32/8 n131072 d128 causal_top_left bf16' --plan r8,distribution=zigzag --rate 800 >ring 2>&1
check "a kernel of several ranks is told as a group" has ring "ranks: a model, within 5 % of two H200s from 4,096 tokens a GPU on"
check "with the length from which the exchange hides" has ring "contiguous 535, zigzag 1070, stripe 1070 queries of an entry a GPU"
ring_is_shown() {  # as the README of the models shows it, but for lines left out
  local lines=0 line
  while IFS= read -r line; do
    lines=$((lines + 1))
    has ring "$line" || return 1
  done < <(sed -n '/^\$ .\/attest explain n3_ring/,/^```/{/^\$/d;/^```/d;/^  *\.\.\.$/d;p}' "${readme%/results*}/explain/README.md")
  [ "$lines" -ge 15 ]
}
check "as its README shows" ring_is_shown
check "and with the network past a host of eight" grep -qE '^ +16 +8192  ndr ' ring
check "one without ranks has no such part" [ "$(grep -c '^ranks:' k1)" -eq 0 ]

"$attest" explain --fit 164KiB --head-dim 64 >fit 2>&1
for line in "301.3 x 150.7      45398" "289 x 157      45373     167930" "256 x 176      45056     167936" \
            "208 x 208" "256 x 128      32768     131072" "64 x 328"; do
  check "tiles for 164 KiB: $line" has fit "$line"
done
"$attest" explain --fit 227KiB --head-dim 128 --json >fit.json
check "as JSON" has fit.json '"powers_of_two":{"query_tile":256,"key_tile":128'

"$attest" explain fa2_mma --problem 'h2 n256 d64' >typed 2>&1
check "a kernel without fp32 is asked in a type that it has" has typed "q256 k256 d64 none fp16"
check "and in fp32 only if that is said" refused "fa2_mma has no fp32 version" explain fa2_mma --problem 'h2 n256 d64 fp32'
check "a block that does not fit an SM has no counters and no times" \
  refused "a block of 256 threads and 66048 B of shared memory does not fit an SM of T4" \
  explain k5_padded_tiles --plan qt64,kt64 --device t4
"$attest" explain fa3_wgmma --problem 'b8 h12 n4096 d128 causal_top_left bf16' >fa3 2>&1
check "what a warp asks for is no more than the sectors that it gets" \
  awk '/ LSE .* %$/ {found = 1; if ($(NF - 1) > 100) exit 1} END {exit !found}' fa3

check "an unknown kernel" refused "kernel 'k99' is unknown" explain k99
check "an unknown device" refused "device 'b200' is unknown; allowed: h200, h100" explain k1_naive --device b200
check "a Plan that does not fit" refused "threads of a block is 4096; allowed: 1 to 1024" \
  explain k3_sequence_parallel --plan qt64,kt64
check "a Plan field that the kernel does not have" refused "plan field 'key_splits' is set; kernel k1_naive offers" \
  explain k1_naive --plan ks2
check "an unknown Plan field" refused "plan: 'xt3' is unknown" explain k1_naive --plan xt3
check "a problem that the kernel does not do" refused "fp16" explain k1_naive --problem 'n64 d64 fp16'
check "a grid that is too large" refused "grid.x is" explain k3_sequence_parallel --problem 'b65536 h65536 n1024 d64'
check "a problem that is none" refused "'n0x' is unknown" explain k1_naive --problem n0x
check "nothing asked" refused "allowed: one kernel, or --fit" explain
check "no head dim" refused "--head-dim is 0" explain --fit 48KiB --head-dim 0
check "no size" refused "--fit is '3 apples'" explain --fit '3 apples'
exit $((failures > 0))
