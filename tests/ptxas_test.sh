#!/usr/bin/env bash
# cmake/check_ptxas lets good kernels pass in silence and refuses slow ones with a line. Arguments: this repository's root, nvcc.
set -u
root=$1
nvcc=$2
source "${BASH_SOURCE[0]%/*}/checks.sh"
compile() {  # nvcc's options...
  "$root/cmake/check_ptxas" "$nvcc" -std=c++17 -gencode arch=compute_90a,code=sm_90a -Xptxas=--warn-on-spills,--warn-on-local-memory-usage "$@" \
    -c "$root/tests/ptxas_test.cu" -o ptxas_test.o >printed 2>&1
}
refused() {  # macro, kernel, what ptxas says
  touch ptxas_test.o
  ! compile "-D$1" && [ ! -e ptxas_test.o ] && ! grep -qv '^refused: ptxas_test.cu: ' printed &&
    grep -q "$3" printed && grep -q "'$2" printed && return
  cat printed
  return 1
}
accepted() { compile "$@" && [ -s ptxas_test.o ]; }

check "good kernels compile" accepted
check "and nothing is printed" [ ! -s printed ]
check "sums read before the wait are refused" refused READ_BEFORE_THE_WAIT 'product(float\*, ' 'is injected in'
check "a setmaxnreg without effect is refused" refused UNKNOWN_REGISTERS '' "'setmaxnreg' ignored"
check "spilled registers are refused" refused TOO_FEW_REGISTERS 'polynomials(float\*, int)' 'bytes spill stores'
check "an array in local memory is refused" refused UNKNOWN_INDEX 'look_up(float\*, int)' 'size of stack frame'
check "an error of the compiler stays one" bash -c "! '$root/cmake/check_ptxas' '$nvcc' --no-such-option 2>err && grep -q no-such-option err"
check "what the compiler says passes" bash -c "'$root/cmake/check_ptxas' bash -c 'echo out; echo ptxas info : fine >&2' >out 2>err &&
  grep -qx out out && grep -qx 'ptxas info : fine' err"
[ $failures -eq 0 ]
