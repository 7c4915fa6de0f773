# Compiles .cu files with the host compiler for the SIMT executor. -fsanitize=thread makes the compiler call a hook at
# every load and store; the hooks are ours (gpu/simt/memory_hooks.cpp), the sanitizer's runtime is never linked. So these
# files cannot carry another sanitizer. Line tables are kept: a finding names its source line.
add_library(attest_simt_options INTERFACE)
target_include_directories(attest_simt_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(attest_simt_options INTERFACE
  -g1 -ffp-contract=off -fsanitize=thread --param=tsan-instrument-func-entry-exit=0
  # g++ instruments no store of what a call returns, and no load of what a call is given, where that is a struct: with a copy between, whose
  # load and store it instruments, the hooks see them whatever is inlined.
  -fno-elide-constructors
  -fno-tree-sra -fno-tree-vectorize -fno-tree-slp-vectorize -fno-store-merging -fno-thread-jumps
  --param=max-inline-insns-single=1000 --param=max-inline-insns-auto=1000
  -Wall -Wextra -Wno-unknown-pragmas -Wno-tsan)

# CUDA as the host knows it comes before the first line of every file.
attest_add_prefix(attest_simt_prefix
  HEADERS <gpu/simt/cuda_on_host.hpp> <core/run/kernel.hpp> <core/run/registry.hpp> <gpu/simt/launch.hpp> <algorithm>
  LIBRARIES attest_simt_options)
target_compile_options(attest_simt_prefix PRIVATE -O1)

# attest_compile_for_simt(target SOURCES ... [OPTIONS ...]): what links the target gets its objects.
function(attest_compile_for_simt target)
  cmake_parse_arguments(ARG "" "" "SOURCES;OPTIONS" ${ARGN})
  if(ATTEST_EXECUTOR_OBJECTS)
    attest_take_objects(${target} ${ARG_SOURCES})
    return()
  endif()
  set_source_files_properties(${ARG_SOURCES} PROPERTIES LANGUAGE CXX)
  add_library(${target} OBJECT ${ARG_SOURCES})
  # -O2 takes half as long again to compile, and the kernels run no faster: most of their time goes to the hooks. What -O2 inlines is inlined, so that a
  # function called three times has three places in a table of counters.
  target_compile_options(${target} PRIVATE -O1 -finline-small-functions -finline-functions -findirect-inlining ${ARG_OPTIONS})
  target_link_libraries(${target} PRIVATE attest_simt_options PUBLIC attest_simt attest_core)
  target_precompile_headers(${target} REUSE_FROM attest_simt_prefix)
endfunction()

# These files carry no sanitizer, so a build under sanitizers would compile them to what the release build has: .ci/run, which
# has just made that one, names it in ATTEST_EXECUTOR_OBJECTS. Nobody else should: the objects may be older than the sources.
function(attest_take_objects target)
  set(objects "")
  foreach(source ${ARGN})
    set(base ${CMAKE_CURRENT_SOURCE_DIR})
    if(source MATCHES "^${PROJECT_BINARY_DIR}/")
      set(base ${CMAKE_CURRENT_BINARY_DIR})
    endif()
    file(RELATIVE_PATH name ${base} ${source})
    string(REPLACE "../" "__/" name "${name}")
    file(RELATIVE_PATH folder ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR})
    list(APPEND objects ${ATTEST_EXECUTOR_OBJECTS}/${folder}/CMakeFiles/${target}.dir/${name}.o)
  endforeach()
  # As sources: objects that are linked as libraries may come behind the archives that they need something of.
  add_library(${target}_objects OBJECT IMPORTED GLOBAL)
  set_target_properties(${target}_objects PROPERTIES IMPORTED_OBJECTS "${objects}")
  add_library(${target} INTERFACE)
  target_sources(${target} INTERFACE $<TARGET_OBJECTS:${target}_objects>)
  target_link_libraries(${target} INTERFACE attest_simt attest_core)
endfunction()
