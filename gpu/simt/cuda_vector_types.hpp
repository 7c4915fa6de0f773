#pragma once

// CUDA's built-in vector types, with its sizes and alignments, for .cu files compiled by the host
// compiler.

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3() = default;
  constexpr dim3(unsigned x_, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

#define ATTEST_VECTOR_TYPES(element, name)                                       \
  struct alignas(2 * sizeof(element)) name##2 {                                  \
    element x, y;                                                                \
  };                                                                             \
  struct alignas(sizeof(element) < 8 ? 4 * sizeof(element) : 16) name##4 {       \
    element x, y, z, w;                                                          \
  };                                                                             \
  constexpr name##2 make_##name##2(element x, element y) {                       \
    return {x, y};                                                               \
  }                                                                              \
  constexpr name##4 make_##name##4(element x, element y, element z, element w) { \
    return {x, y, z, w};                                                         \
  }

ATTEST_VECTOR_TYPES(float, float)
ATTEST_VECTOR_TYPES(double, double)
ATTEST_VECTOR_TYPES(int, int)
ATTEST_VECTOR_TYPES(unsigned, uint)
ATTEST_VECTOR_TYPES(short, short)
ATTEST_VECTOR_TYPES(unsigned short, ushort)
ATTEST_VECTOR_TYPES(long long, longlong)
ATTEST_VECTOR_TYPES(unsigned long long, ulonglong)
#undef ATTEST_VECTOR_TYPES

struct float3 {
  float x, y, z;
};
struct int3 {
  int x, y, z;
};
constexpr float3 make_float3(float x, float y, float z) {
  return {x, y, z};
}
constexpr int3 make_int3(int x, int y, int z) {
  return {x, y, z};
}
constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) {
  return {x, y, z};
}
