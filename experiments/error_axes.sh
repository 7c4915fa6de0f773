#!/usr/bin/env bash
# Errors by precision along one axis at a time: length, head dim, size of the logits, key tile, order of keys, splits, row under
# a causal mask, kind of inputs, real layers and heads, steps of decoding, form of online softmax, place of a rounding; of gradients; of codes; and of Plans that were timed. On the executor, which has
# the H200's bits for these kernels (../gpu/arithmetic), and by emulations on the CPU.
#
#   experiments/error_axes.sh build/release/bin/attest OUT [AXIS...]
#
# writes OUT/errors_AXIS.jsonl; all axes when none is named. An hour of one core, most of it for lengths.
set -euo pipefail
attest=$1 out=$2; shift 2
fixed=(--executor simt --sets 2)

# errors FILE ARGUMENTS...: one file an axis, whatever the commands that fill it.
errors() {
  local axis=$1; shift
  "$attest" errors "${fixed[@]}" --out "$out/$axis" "$@" >>"$out/$axis.log" 2>&1
}
# Every precision that a GPU kernel has: fp32 by FFMA, by fp16 and bf16 parts, by TF32 parts, TF32, fp16 and bf16.
precisions() {
  errors "$@" --kernel 'k10_wide_tiles,fa2_mma'
  errors "$@" --kernel fp32_wgmma --plan 'products={automatic,bf16_x6}'
  errors "$@" --kernel tf32_mma --plan 'products={tf32_x3,tf32}'
}
length() {
  precisions length --family normal --problem 'h1 n{64,128,256,512,1024,2048,4096} d64'
  errors length --family normal --problem 'h1 n{64,128,256,512,1024,2048,4096} d64' --kernel 'k7_shuffled_rows,fa3_wgmma'
}
head_dim() { precisions head_dim --family normal --problem 'h2 n512 d{16,32,64,128,256}'; }
magnitude() { precisions magnitude --family 'normal:{0.25,1,4,16,64}' --problem 'h2 n512 d64'; }
key_tile() {
  local inputs=(--family normal --family ascending_maxima:20 --problem 'h2 n1024 d64')
  errors key_tile "${inputs[@]}" --kernel fa2_mma --plan 'qt64,kt{32,64,128}'
  fixed=(--executor cpu --sets 2)
  errors key_tile "${inputs[@]}" --kernel choice/flash --plan 'kt{16,32,64,128,256,1024}'
  errors key_tile "${inputs[@]/d64/d64 fp32}" --kernel emulated_fma --plan 'kt{16,32,64,128,256,1024}'
  errors key_tile "${inputs[@]}" --kernel emulated_split_sm90 --plan 'products={tf32_x3,fp16_x3,bf16_x6,tf32},kt{16,32,64,128,256,1024}'
}
key_order() {
  precisions key_order --family normal:4 --family sink:8 --problem 'h2 n512 d64' \
    --key-order drawn --key-order reversed --key-order rising --key-order falling
}
key_splits() {
  local inputs=(--family normal --family normal:4 --problem 'h2 n1024 d64')
  errors key_splits "${inputs[@]}" --kernel fa2_mma --plan 'key_splits={1,2,4,8}'
  fixed=(--executor cpu --sets 2)
  errors key_splits "${inputs[@]}" --kernel 'choice/flash,choice/partials_in_16_bits' --plan 'kt32,key_splits={1,2,4,8,16}'
  errors key_splits "${inputs[@]/d64/d64 fp32}" --kernel 'emulated_fma,o6_split_combine' --plan 'kt32,key_splits={1,2,4,8,16}'
  errors key_splits "${inputs[@]}" --kernel emulated_split_sm90 --plan 'products={tf32_x3,fp16_x3,bf16_x6,tf32},kt32,key_splits={1,2,4,8,16}'
}
row() { precisions row --family normal --problem 'h2 n1024 d64 causal_top_left' --by row; }
family() {
  precisions family --problem 'h2 n512 d64' --family normal --family 'outliers:{1,10}' --family sink:8 --family ties:1 \
    --family all_negative:200 --family zero_q --family dominant_key:30 --family huge_logits:100 --family real
  errors family --problem 'h2 n512 d64' --family normal --family outliers --family real --kernel fa3_wgmma
}
layer() {
  precisions layer --family 'smollm2.*' --problem 'h3/1 n1024 d64 causal_top_left' --by head
  precisions layer --family 'minilm.*' --problem 'h3 n512 d32' --by head
  fixed=(--executor cpu --sets 2)  # without fa2_mma's lagging reference
  errors layer --family 'smollm2.*' --problem 'h3/1 n1024 d64 causal_top_left' --by head --kernel choice/flash --plan kt64
  errors layer --family 'minilm.*' --problem 'h3 n512 d32' --by head --kernel choice/flash --plan kt64
}
layer_row() { errors layer_row --family 'smollm2.*' --problem 'h3/1 n1024 d64 causal_top_left' --by row --kernel fa2_mma; }
map() {
  errors map --map --problem 'h2 n1024 d64 bf16 causal_top_left' --family normal --kernel fa2_mma
  errors map --map --problem 'h2 n1024 d64 bf16' --family outliers --kernel fa2_mma
  errors map --map --problem 'h3/1 n1024 d64 bf16 causal_top_left' --family 'smollm2.layer{0,18,29}' --kernel fa2_mma
  errors map --map --problem 'h2 n1024 d64 causal_top_left' --family normal --kernel k10_wide_tiles
  local layer=(--map --problem 'h3/1 n1024 d64 fp32 causal_top_left' --family smollm2.layer18)
  errors map "${layer[@]}" --kernel k10_wide_tiles
  errors map "${layer[@]}" --kernel fp32_wgmma --plan products=automatic
  errors map "${layer[@]}" --kernel tf32_mma --plan products=tf32
}
# Plans that were timed later than the others of errors_precision.jsonl were judged.
timed() {
  errors timed --family normal --problem 'h2 n1024 d64' --kernel fa3_wgmma --plan qt256,kt64
  errors timed --family normal --problem 'h2 n1024 d128' --kernel fa3_wgmma --plan qt192,kt64
  errors timed --family normal --problem 'h2 n1024 d64' --kernel fp32_wgmma --plan qt192,kt64
}
variant() {
  fixed=(--executor cpu --sets 2)
  errors variant --kernel 'o*' --problem 'h2 n{64,512,2048} d64 fp32' --family normal
  errors variant --kernel 'o*' --problem 'h2 n512 d64 fp32' --family normal:16 --family 'ascending_maxima:{20,80}' --family sink:8
}
choice() {
  fixed=(--executor cpu --sets 2)
  errors choice --kernel 'choice/*' --plan kt64,key_splits=4 --problem 'h2 n512 d64' --family normal --family real
  # l of a mean over N keys, in 16 bits: counts to 2,048 in fp16 and to 256 in bf16.
  errors choice --kernel 'f2_half,mutant/c32_low_precision_sum' --problem 'h1 q64 k{128,512,2048,8192} d64' --family zero_q --family normal
}

# Gradients. The emulations of choice/bwd_* tell the roundings apart; backward_tiled is fp32's row. With --exact-saved O is not rounded
# in what they are held against.
gradients() {
  local axis=$1; shift
  errors "backward_$axis" --operation backward "$@"
}
backward_precision() {
  local inputs=(--family normal --problem 'h2 n512 d64')
  gradients precision "${inputs[@]}" --kernel 'bwd_simple,bwd_wgmma'
  fixed=(--executor cpu --sets 2)
  gradients precision "${inputs[@]}" --kernel backward_tiled --plan qt16,kt32
}
backward_choice() {
  fixed=(--executor cpu --sets 2)
  local inputs=(--problem 'h2/1 n512 d64' --family normal --family normal:4 --family gradient_along_o --family gradient_mean_kv:3 --family real)
  gradients choice "${inputs[@]}" --kernel 'choice/*'
  gradients choice "${inputs[@]}" --kernel choice/bwd_nothing_rounded,choice/bwd_flash --exact-saved
  gradients choice "${inputs[@]}" --kernel choice/bwd_flash --unrounded
}
backward_family() {
  fixed=(--executor cpu --sets 2)
  local inputs=(--problem 'h2 n256 d64' --family 'normal:{1,4,16}' --family 'gradient_along_o:{1,4}' --family 'gradient_mean_kv:{1,3}' --family outliers
    --family sink:8 --family dominant_key:30 --family gradient_one_hot --family 'gradient_scaled:{0.000244140625,65536}' --family gradient_inexact_saved --family real)
  gradients family "${inputs[@]}" --kernel backward_tiled --plan qt16,kt32
  gradients family "${inputs[@]}" --kernel choice/bwd_nothing_rounded,choice/bwd_flash --exact-saved
}
backward_mean() {
  fixed=(--executor cpu --sets 2)
  local inputs=(--problem 'h2 n256 d64' --family 'gradient_mean_kv:{0.25,0.5,1,2,4,8}')
  gradients mean "${inputs[@]}" --kernel backward_tiled --plan qt16,kt32
  gradients mean "${inputs[@]}" --kernel choice/bwd_nothing_rounded,choice/bwd_flash,choice/bwd_delta_rounded
  gradients mean "${inputs[@]}" --kernel choice/bwd_nothing_rounded,choice/bwd_flash --exact-saved
}
backward_length() {
  fixed=(--executor cpu --sets 2)
  local inputs=(--problem 'h1 n{64,128,256,512,1024} d64' --family normal)
  gradients length "${inputs[@]}" --kernel backward_tiled --plan qt16,kt32
  gradients length "${inputs[@]}" --kernel 'choice/bwd_nothing_rounded,choice/bwd_flash,choice/bwd_dq_sums_rounded'
}
backward_layer() {
  fixed=(--executor cpu --sets 2)
  local inputs=(--family 'smollm2.*' --problem 'h3/1 n256 d64 causal_top_left')
  gradients layer "${inputs[@]}" --kernel backward_tiled --plan qt16,kt32
  gradients layer "${inputs[@]}" --kernel choice/bwd_nothing_rounded,choice/bwd_flash --exact-saved
}

# Attention of codes, held against what became codes. FlashAttention-3's Table 3 is outliers: one head there is a tensor of one scale.
quantised() {
  local axis=$1; shift
  errors "quantised_$axis" --operation quantised --unrounded "$@"
}
groups=('qscales_head' 'qscales_block kscales_block vscales_block' 'qscales_row kscales_row vscales_row' 'qscales_row kscales_row vscales_column')
formats=('qcode_e4m3' 'qcode_e5m2 kcode_e5m2 vcode_e5m2' 'qcode_int8 kcode_int8 vcode_int8' 'qcode_int8 kcode_int8')
# Every format on the same numbers, held against them: those of fp32 are read as they are.
quantised_precision() {
  local problem='h1 q128 k1024 d128' inputs=(--family normal,outliers)
  errors quantised_precision "${inputs[@]}" --problem "$problem fp32" --kernel k10_wide_tiles
  errors quantised_precision "${inputs[@]}" --problem "$problem fp32" --kernel fp32_wgmma --plan 'products={automatic,bf16_x6}'
  errors quantised_precision "${inputs[@]}" --problem "$problem fp32" --kernel tf32_mma --plan products=tf32
  errors quantised_precision "${inputs[@]}" --unrounded --problem "$problem" --kernel fa3_wgmma
  quantised precision "${inputs[@]}" --problem "$problem bf16 qcode_e4m3 qscales_head" --kernel fp8_wgmma
  quantised precision "${inputs[@]}" --problem "$problem bf16 qcode_e4m3 qscales_block kscales_block vscales_column" --kernel fp8_wgmma
  quantised precision "${inputs[@]}" --problem "$problem bf16 kscales_row vscales_column" --kernel decode_codes
  quantised precision "${inputs[@]}" --problem "$problem bf16 kcode_int8 vcode_int8 kscales_row vscales_column" --kernel decode_codes
}
quantised_granularity() {
  fixed=(--executor cpu --sets 2)
  local codes scales
  for codes in "${formats[@]}"; do
    for scales in "${groups[@]}"; do
      quantised granularity --kernel quantised_rows --problem "h1 q128 k1024 d128 fp16 $codes $scales" --family normal,outliers,channel_means_k
      quantised granularity --kernel quantised_rows --problem "h3/1 n1024 d64 fp16 causal_top_left $codes $scales" --family 'smollm2.layer{0,18,29}'
    done
  done
  for scales in vscales_head vscales_column 'kscales_row vscales_row'; do
    quantised granularity --kernel quantised_rows --problem "h1 q128 k1024 d128 fp16 $scales" --family normal,outliers
  done
  errors quantised_granularity --unrounded --kernel choice/flash --plan kt64 --problem 'h1 q128 k1024 d128' --family normal,outliers
  errors quantised_granularity --unrounded --kernel choice/flash --plan kt64 --problem 'h3/1 n1024 d64 causal_top_left' --family 'smollm2.layer{0,18,29}'
}
quantised_length() {
  local problem='h1 q64 k{1024,2048,4096,8192,16384} d128 fp16 qcode_e4m3 qscales_block kscales_block' inputs=(--family 'normal,outliers,offset_v:{1,10}')
  fixed=(--executor simt --sets 2)
  quantised length --kernel fp8_wgmma --problem "$problem" "${inputs[@]}"
  fixed=(--executor cpu --sets 2)
  quantised length --kernel quantised_rows --problem "$problem" "${inputs[@]}"
  quantised length --kernel quantised_rows --problem "${problem//e4m3/int8} kcode_int8" "${inputs[@]}"
}
# What kernels add to what codes cost: against the numbers that codes stand for.
quantised_kernel() {
  local problem='h1 q64 k{1024,4096,16384} d128 fp16 qcode_e4m3 qscales_block kscales_block' inputs=(--family 'normal,outliers,offset_v:{1,10}')
  fixed=(--executor simt --sets 2)
  errors quantised_kernel --operation quantised --kernel fp8_wgmma --problem "$problem" "${inputs[@]}"
  fixed=(--executor cpu --sets 2)
  errors quantised_kernel --operation quantised --kernel quantised_rows --problem "$problem" "${inputs[@]}"
}
quantised_smoothing() {
  fixed=(--executor cpu --sets 2)
  local codes smooth
  for codes in 'qcode_int8 kcode_int8' 'qcode_e4m3'; do
    for smooth in '' --smooth-keys; do
      quantised smoothing $smooth --kernel quantised_rows --problem "h1 q128 k1024 d128 fp16 $codes qscales_block kscales_block" --family 'normal,channel_means_k:{1,10}'
      quantised smoothing $smooth --kernel quantised_rows --problem "h3/1 n1024 d64 fp16 causal_top_left $codes qscales_block kscales_block" --family 'smollm2.layer{0,18,29}'
    done
  done
}
# Layers whose K has channels far above the others: the kernel's error, and what rounding Q, K and V before it costs.
outlier_channels() {
  local problem='h7/1 n512 d64 causal_top_left' unrounded smooth
  for unrounded in '' --unrounded; do
    errors outlier_channels $unrounded --family 'qwen2.*' --problem "$problem fp16" --kernel fa2_mma
    errors outlier_channels $unrounded --family 'qwen2.*' --problem "$problem bf16" --kernel fa2_mma
  done
  errors outlier_channels --family 'qwen2.*' --problem "$problem fp32" --kernel k10_wide_tiles
  errors outlier_channels --family 'qwen2.*' --problem "$problem fp32" --kernel tf32_mma --plan products=tf32
  fixed=(--executor cpu --sets 2)
  for smooth in '' --smooth-keys; do
    errors outlier_channels --operation quantised --unrounded $smooth --kernel quantised_rows \
      --problem "$problem fp16 qcode_{e4m3,int8} kcode_{e4m3,int8} qscales_row kscales_row vscales_column" --family 'qwen2.*'
  done
}

# Sound: frames among themselves, and tokens that look at frames, all of them and one after the other.
audio() {
  local unrounded fp32
  for unrounded in '' --unrounded; do
    errors audio $unrounded --family whisper.encoder_layer0 --problem 'h1 n1500 d64' --kernel fa2_mma
    errors audio $unrounded --family 'whisper.cross*' --problem 'h1 q84 k1500 d64' --kernel fa2_mma
  done
  for fp32 in 'k10_wide_tiles' 'tf32_mma --plan products=tf32'; do
    errors audio --family whisper.encoder_layer0 --problem 'h1 n1500 d64 fp32' --kernel $fp32
    errors audio --family 'whisper.cross*' --problem 'h1 q84 k1500 d64 fp32' --kernel $fp32
  done
}
# The last query of a layer and the last eight, as decoding has them.
decoding() {
  local unrounded
  for unrounded in '' --unrounded; do
    errors decoding $unrounded --family 'smollm2.*' --problem 'h3/1 q{1,8} k1024 d64 causal_bottom_right' --kernel decode_mma
    errors decoding $unrounded --family 'qwen2.*' --problem 'h7/1 q{1,8} k512 d64 causal_bottom_right' --kernel decode_mma
    errors decoding $unrounded --family 'whisper.cross*' --problem 'h1 q{1,8} k1500 d64' --kernel decode_mma
  done
}

mkdir -p "$out"
axes=("$@")
[ ${#axes[@]} -gt 0 ] || axes=(head_dim magnitude key_tile key_order key_splits row family layer layer_row outlier_channels audio decoding map timed variant choice length
  backward_precision backward_choice backward_family backward_mean backward_length backward_layer
  quantised_precision quantised_granularity quantised_length quantised_kernel quantised_smoothing)
for axis in "${axes[@]}"; do
  ( "$axis" )
  mv "$out/$axis/errors.jsonl" "$out/errors_$axis.jsonl"
  rmdir "$out/$axis"
done
