# Compiles .cu files with the host compiler for the SIMT executor. -fsanitize=thread makes the compiler call a hook at
# every load and store; the hooks are ours (gpu/simt/memory_hooks.cpp), the sanitizer's runtime is never linked. So these
# files cannot carry another sanitizer. Line tables are kept: a finding names its source line.
add_library(attest_simt_options INTERFACE)
target_include_directories(attest_simt_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(attest_simt_options INTERFACE
  -g1 -ffp-contract=off -fsanitize=thread --param=tsan-instrument-func-entry-exit=0
  -fno-tree-sra -fno-tree-vectorize -fno-tree-slp-vectorize -fno-store-merging -fno-thread-jumps
  --param=max-inline-insns-single=1000 --param=max-inline-insns-auto=1000
  -Wall -Wextra -Wno-unknown-pragmas -Wno-tsan)

# CUDA as the host knows it comes before the first line of every file.
attest_add_prefix(attest_simt_prefix
  HEADERS ${PROJECT_SOURCE_DIR}/gpu/simt/cuda_on_host.hpp ${PROJECT_SOURCE_DIR}/core/kernel.hpp
          ${PROJECT_SOURCE_DIR}/core/registry.hpp ${PROJECT_SOURCE_DIR}/gpu/simt/launch.hpp <algorithm>
  LIBRARIES attest_simt_options)
target_compile_options(attest_simt_prefix PRIVATE -O2)

function(attest_compile_for_simt target)
  set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX)
  add_library(${target} OBJECT ${ARGN})
  target_compile_options(${target} PRIVATE -O2)
  target_link_libraries(${target} PRIVATE attest_simt_options)
  target_precompile_headers(${target} REUSE_FROM attest_simt_prefix)
endfunction()
