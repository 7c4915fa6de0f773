# attest_cut_mutants(all sample): sets <all>_cpp, <all>_cu, <sample>_cpp and <sample>_cu to the sources of planted bugs that verify/mutants/cut.py
# makes out of today's kernels, in the target attest_cut_mutants. Which files those are depends on the .mutants files alone, so that no edit of a
# kernel configures the tree again.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
function(attest_cut_mutants all sample)
  set(folder ${PROJECT_SOURCE_DIR}/verify/mutants)
  set(out ${PROJECT_BINARY_DIR}/mutants)
  set(cut ${Python3_EXECUTABLE} -B ${folder}/cut.py --source ${PROJECT_SOURCE_DIR} --out ${out})
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.mutants)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/cut.py ${files})
  execute_process(COMMAND ${cut} --list OUTPUT_VARIABLE printed ERROR_VARIABLE wrong RESULT_VARIABLE code
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
  if(code)
    message(FATAL_ERROR "${wrong}")
  endif()
  set(made "")
  foreach(kind all sample)
    foreach(language cpp cu)
      string(REGEX MATCHALL "${kind} [^\n]+\\.${language}" sources "${printed}")
      list(TRANSFORM sources REPLACE "^${kind} " "")
      list(APPEND made ${sources})
      set(${${kind}}_${language} ${sources} PARENT_SCOPE)
    endforeach()
  endforeach()
  file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/*/*_test.cpp ${PROJECT_SOURCE_DIR}/*/*/*_test.cpp ${PROJECT_SOURCE_DIR}/*/*/*/*_test.cpp
    ${PROJECT_SOURCE_DIR}/tests/commands_test.py)
  add_custom_command(OUTPUT ${out}/fingerprints.tsv BYPRODUCTS ${made} ${out}/sample.txt
    COMMAND ${cut} --named-in ${tests} --depfile ${out}/cut.d
    DEPENDS ${folder}/cut.py ${folder}/sample.py ${files} DEPFILE ${out}/cut.d
    COMMENT "Planting bugs in copies of today's kernels" VERBATIM)
  add_custom_target(attest_cut_mutants DEPENDS ${out}/fingerprints.tsv)
endfunction()

# attest_add_mutants(target CPP sources... CU sources...): a library of planted bugs, compiled where something links it. -Og: most die in their first
# cases, so compile time counts; a third less than -O1.
function(attest_add_mutants target)
  cmake_parse_arguments(ARG "" "" "CPP;CU" ${ARGN})
  add_library(${target} INTERFACE)
  attest_compile_for_simt(${target}_simt SOURCES ${ARG_CU} OPTIONS -Og)
  target_link_libraries(${target} INTERFACE ${target}_simt)
  if(ATTEST_EXECUTOR_OBJECTS)
    attest_take_objects(${target}_cpu ${ARG_CPP})
    target_link_libraries(${target} INTERFACE ${target}_cpu attest_cpu_reference)
    return()
  endif()
  add_library(${target}_cpu OBJECT ${ARG_CPP})
  target_compile_options(${target}_cpu PRIVATE -Og)
  target_link_libraries(${target}_cpu PUBLIC attest_cpu_reference PRIVATE attest_options)
  target_precompile_headers(${target}_cpu REUSE_FROM attest_prefix)
  target_link_libraries(${target} INTERFACE ${target}_cpu $<TARGET_OBJECTS:${target}_cpu> $<TARGET_OBJECTS:${target}_simt>)
  foreach(library ${target}_cpu ${target}_simt)
    add_dependencies(${library} attest_cut_mutants)
    set_target_properties(${library} PROPERTIES EXCLUDE_FROM_ALL ON)
  endforeach()
endfunction()
