# Precompiled headers: parsing the standard library, {fmt} and GoogleTest was more than half of the time that most of our
# files took. More in them costs more than it saves: with JSON and RapidCheck every file took half a second longer, core/run/kernel.hpp
# makes no difference. Each source still includes what it uses; the fuzz preset, which compiles the parsers without this, says so.

# attest_add_prefix(name HEADERS ... LIBRARIES ...): a target that does nothing but compile these headers, once, for all
# targets that then say target_precompile_headers(<target> REUSE_FROM <name>). They must agree in -g, sanitizers and
# whether they optimise.
function(attest_add_prefix name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LIBRARIES" ${ARGN})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/empty.cpp CONTENT "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/generated/empty.cpp)
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

set(headers <fmt/format.h> <algorithm> <array> <chrono> <cmath> <cstdint> <filesystem> <fstream> <functional> <limits>
  <map> <memory> <numeric> <optional> <ranges> <set> <span> <string> <string_view> <utility> <vector>)
attest_add_prefix(attest_prefix HEADERS ${headers} LIBRARIES attest_options attest_fmt)
if(ATTEST_ENABLE_TESTS)
  attest_add_prefix(attest_test_prefix HEADERS ${headers} <gtest/gtest.h> LIBRARIES attest_options attest_fmt GTest::gtest)
  target_compile_options(attest_test_prefix PRIVATE -O0)  # as the tests are
endif()
