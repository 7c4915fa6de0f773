# Writes build/.../generated/build_info.inc (commit, dirty, compiler, flags) before every build; touched only when it changes.
set(ATTEST_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
add_custom_target(attest_build_info
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUT=${ATTEST_GENERATED_DIR}/build_info.inc
          "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
          "-DCUDA_COMPILER=${CMAKE_CUDA_COMPILER_VERSION}" "-DBUILD_TYPE=${CMAKE_BUILD_TYPE}" "-DSANITIZE=${ATTEST_SANITIZE}"
          -P ${PROJECT_SOURCE_DIR}/cmake/write_build_info.cmake
  BYPRODUCTS ${ATTEST_GENERATED_DIR}/build_info.inc VERBATIM)
