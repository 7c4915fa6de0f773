# One interface target carries the warnings and the floating-point rules of all our code.
add_library(attest_options INTERFACE)
target_include_directories(attest_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(attest_options INTERFACE
  # A product and a sum are two roundings unless the source says fma: emulation and error bounds count on it.
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion $<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow> -Wswitch -Wold-style-cast>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${ATTEST_ENABLE_WERROR}>>:-Werror>)

# For text, tables and JSON compile time counts: -Og takes a quarter less than -O1. There g++ 12 takes parts of <regex> for
# uninitialised.
function(attest_optimise_little target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Og> $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
endfunction()

# CMAKE_UNITY_BUILD asks for sources compiled together, and only targets that say so are: files that register a kernel or a
# law, all under one name, stay apart. -Wshadow is for sources compiled apart, since a name of one may be a local name of another.
set(ATTEST_UNITY_BUILD ${CMAKE_UNITY_BUILD})
set(CMAKE_UNITY_BUILD OFF)
# attest_compile_together(target): most of what compiling a small file costs are its headers.
function(attest_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD "${ATTEST_UNITY_BUILD}" UNITY_BUILD_BATCH_SIZE 8)
endfunction()

if(ATTEST_SANITIZE)
  add_library(attest_sanitize INTERFACE)
  target_compile_options(attest_sanitize INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${ATTEST_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1>)
  target_link_options(attest_sanitize INTERFACE -fsanitize=${ATTEST_SANITIZE})
  target_link_libraries(attest_options INTERFACE attest_sanitize)
endif()

find_program(ATTEST_CCACHE ccache)
if(ATTEST_CCACHE)
  # What ccache asks for before it keeps what was compiled with a precompiled header. Depend mode compares whole files: by its
  # default, preprocessed text, a header in which only a comment changed brings the old precompiled header back, whose
  # `#pragma once` does not know the new file.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros
    ${ATTEST_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${ATTEST_CCACHE})
endif()

# attest_embed(source name file): the source carries the file in the binary, by `.incbin` of the path that the macro `name` is.
# name_SHA256 makes another compilation of it when the file changes: ccache does not see what the assembler reads.
function(attest_embed source name file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(SHA256 ${file} hash)
  set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS "${name}=\"${file}\"" ${name}_SHA256=${hash})
endfunction()
