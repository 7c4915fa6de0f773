#!/usr/bin/env bash
# Ranks of a study choose their GPU before CUDA starts, in every process of theirs. Arguments: the binary, the folder of the fake
# driver (fake_cuda_driver.c), which writes down which GPUs CUDA could see when it started.
set -u
attest=$1
source "${BASH_SOURCE[0]%/*}/checks.sh"
has() { grep -qF -- "$2" "$1" || { echo "'$2' is not in:"; cat "$1"; return 1; }; }
unset "${!OMPI_@}" "${!PMI_@}" "${!SLURM_@}"
export LD_LIBRARY_PATH=$2 FAKE_CUDA_LOG=$PWD/seen

seen_only() { [ "$(sort -u seen)" = "$1" ] || { echo "CUDA started with:"; sort seen | uniq -c; return 1; }; }
# Rank 1 of 2 on one machine, which has two GPUs, does what the arguments say.
as_rank() {
  rm -f seen
  OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 \
    CUDA_VISIBLE_DEVICES=GPU-a,GPU-b "$attest" study "$@" >log 2>&1
}

study() {  # kernel, executor
  printf '%s\n' "question: Which is the fastest?" "kernels: $1" "executor: $2" \
    "problem: {heads: 1, length: [16, 32], head_dim: 64, element_type: bf16}"
}
for kernel in fa3_wgmma fa2_mma; do
  for executor in auto gpu; do
    study $kernel $executor >study.yaml
    as_rank run study.yaml --out "$kernel.$executor"
    status=$?
    check "$kernel, $executor: CUDA sees the rank's GPU alone" seen_only GPU-b
    [ $executor = auto ] || check "$kernel: the driver finds no GPU, so it is the machine's fault" [ $status -eq 3 ]
  done
done
check "without a GPU the executor counts" has log "executor gpu cannot be used"
as_rank resume fa3_wgmma.auto
check "resume: CUDA sees the rank's GPU alone" seen_only GPU-b
rm -f seen
CUDA_VISIBLE_DEVICES=GPU-a,GPU-b "$attest" study run study.yaml --out alone >log 2>&1
check "who is no rank leaves the GPUs as they are" seen_only GPU-a,GPU-b
[ "$failures" -eq 0 ]
