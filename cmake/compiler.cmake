# One interface target carries the warnings and the floating-point rules of all our code.
add_library(attest_options INTERFACE)
target_include_directories(attest_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(attest_options INTERFACE
  # A product and a sum are two roundings unless the source says fma: emulation and error bounds count on it.
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion $<$<NOT:$<BOOL:$<TARGET_PROPERTY:ATTEST_TOGETHER>>>:-Wshadow> -Wswitch -Wold-style-cast>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${ATTEST_ENABLE_WERROR}>>:-Werror>)

# For text, tables and JSON compile time counts: -Og takes a quarter less than -O1. There g++ 12 takes parts of <regex> for
# uninitialised.
function(attest_optimise_little target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Og> $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
endfunction()

# Small files are compiled together, eight at a time: most of what compiling one costs are its headers. CMAKE_UNITY_BUILD asks for
# it, and only targets that say so are. CMake's own batches name files by absolute path, so that no compiler cache would serve another
# checkout; these name them from the root. -Wshadow is for sources compiled apart, since a name of one may be a local name of another.
set(ATTEST_UNITY_BUILD ${CMAKE_UNITY_BUILD})
set(CMAKE_UNITY_BUILD OFF)

# attest_compile_apart(files...): those that register a kernel or an operation, all under one name.
function(attest_compile_apart)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# attest_compile_together(target [BATCH n]): at the end of the folder's CMakeLists.txt, when all is known of its files.
function(attest_compile_together target)
  cmake_parse_arguments(ARG "" "BATCH" "" ${ARGN})
  if(NOT ARG_BATCH)
    set(ARG_BATCH 8)
  endif()
  if(ATTEST_UNITY_BUILD)
    set_target_properties(${target} PROPERTIES ATTEST_TOGETHER ON)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL attest_make_batches ${target} ${ARG_BATCH})")
  endif()
endfunction()

function(attest_make_batches target size)
  get_target_property(sources ${target} SOURCES)
  set(apart "")
  set(together "")
  foreach(source ${sources})
    if(NOT source MATCHES "[.]cpp$")
      list(APPEND apart ${source})
      continue()
    endif()
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    set(is_apart OFF)
    foreach(property SKIP_UNITY_BUILD_INCLUSION COMPILE_DEFINITIONS COMPILE_OPTIONS)
      get_source_file_property(value ${source} ${property})
      if(value)
        set(is_apart ON)
      endif()
    endforeach()
    if(is_apart)
      list(APPEND apart ${source})
    else()
      list(APPEND together ${source})
    endif()
  endforeach()
  list(LENGTH together count)
  set(first 0)
  while(first LESS count)
    list(SUBLIST together ${first} ${size} batch)
    set(text "")
    foreach(source ${batch})
      file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${source})
      string(APPEND text "#include \"${name}\"\n")
    endforeach()
    set(file ${PROJECT_BINARY_DIR}/together/${target}_${first}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND apart ${file})
    math(EXPR first "${first} + ${size}")
  endwhile()
  set_target_properties(${target} PROPERTIES SOURCES "${apart}")
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
  # Paths below the root are compared from there, so that one checkout serves the next.
  set(ccache ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ccache} CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${ATTEST_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${ccache} ${ATTEST_CCACHE})
endif()

# attest_embed(source name file): the source carries the file in the binary, by `.incbin` of the path that the macro `name` is.
# name_SHA256 makes another compilation of it when the file changes: ccache does not see what the assembler reads.
function(attest_embed source name file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(SHA256 ${file} hash)
  set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS "${name}=\"${file}\"" ${name}_SHA256=${hash})
endfunction()
