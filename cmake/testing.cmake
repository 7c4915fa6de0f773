# Seconds of wall-clock time after which CTest ends a test. It is there to end those that hang and must never end one that is slow: the
# longest take two minutes of an idle core.
set(attest_test_timeout 3600)

# Test programs that a preset does not build: what they have under test says nothing new there.
set(ATTEST_TESTS_LEFT_OUT "" CACHE STRING "Folders whose test programs are not built")

# attest_add_tests(folder sources...): one GoogleTest program a folder; CTest names are <folder>.<Suite>.<test>.
if(ATTEST_ENABLE_TESTS)
  enable_testing()
  include(GoogleTest)
endif()
function(attest_add_tests folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT ATTEST_ENABLE_TESTS OR NOT ARG_SOURCES OR folder IN_LIST ATTEST_TESTS_LEFT_OUT)
    return()
  endif()
  add_executable(${folder}_test ${ARG_SOURCES})
  attest_compile_together(${folder}_test)
  target_link_libraries(${folder}_test PRIVATE ${ARG_LIBRARIES} GTest::gtest GTest::gtest_main attest_options)
  # Most of a test program is assertions: compile time counts. What is under test keeps its level.
  target_compile_options(${folder}_test PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  target_precompile_headers(${folder}_test REUSE_FROM attest_test_prefix)
  target_compile_definitions(${folder}_test PRIVATE ATTEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${folder}_test TEST_PREFIX "${folder}." DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${attest_test_timeout})
endfunction()

# Gives the limit to all tests of this folder that were added with add_test().
function(attest_limit_tests)
  get_property(tests DIRECTORY PROPERTY TESTS)
  set_tests_properties(${tests} PROPERTIES TIMEOUT ${attest_test_timeout})
endfunction()

# A program <folder>_benchmark; not under sanitizers, where its numbers would mean nothing.
function(attest_add_benchmark folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(ATTEST_ENABLE_TESTS AND ARG_SOURCES AND NOT ATTEST_SANITIZE)
    add_executable(${folder}_benchmark ${ARG_SOURCES})
    target_link_libraries(${folder}_benchmark PRIVATE ${ARG_LIBRARIES} attest_options benchmark::benchmark_main)
  endif()
endfunction()
