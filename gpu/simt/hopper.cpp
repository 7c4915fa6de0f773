#include "gpu/simt/hopper.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/attention/tensor_core_product.hpp"
#include "gpu/simt/access_check.hpp"
#include "gpu/simt/block_runner.hpp"
#include "gpu/simt/copy_arrival.hpp"
#include "gpu/simt/cuda_half.hpp"
#include "gpu/simt/launch_tracer.hpp"
#include "gpu/simt/running_thread.hpp"

namespace attest::simt {
namespace {

constexpr std::int64_t row_bytes = 128;  // of a box

/// Bits 4 to 6 of an address are XORed with bits 7 to 9: the 128-byte swizzle.
std::uintptr_t swizzled(std::uintptr_t address) {
  return address ^ ((address >> 7 & 7U) << 4);
}

/// Calls `visit(shared address, global address, bytes)` for each row of the box, with as many bytes
/// as lie in the tensor.
template <typename Visit>
void for_each_row(const void* box, const BoxedTensor& t, const int (&at)[4], const Visit& visit) {
  const auto size = static_cast<std::int64_t>(format_of(t.type).size_bytes);
  for (std::int64_t r = 0; r < t.box_rows; ++r) {
    const std::int64_t row = at[1] + r;
    const bool is_inside =
        row >= 0 && row < t.rows && at[2] >= 0 && at[2] < t.heads && at[3] >= 0 && at[3] < t.batch;
    const std::int64_t columns =
        is_inside ? std::clamp<std::int64_t>(t.columns - at[0], 0, row_bytes / size) : 0;
    const std::int64_t element = columns == 0 ? 0 : t.strides.offset(at[3], at[2], row) + at[0];
    visit(reinterpret_cast<std::uintptr_t>(box) + static_cast<std::uintptr_t>(r * row_bytes),
          reinterpret_cast<std::uintptr_t>(t.first) + static_cast<std::uintptr_t>(element * size),
          columns * size);
  }
}

/// Calls copy for each 16 bytes of a box; the last of a row may have fewer bytes in the tensor,
/// those outside it have 0.
template <typename Copy>
void for_each_chunk(const void* box, const BoxedTensor& t, const int (&at)[4], const Copy& copy) {
  for_each_row(
      box, t, at, [&](std::uintptr_t shared, std::uintptr_t global, std::int64_t bytes_of_row) {
        for (std::int64_t done = 0; done < row_bytes; done += 16) {
          const std::int64_t bytes = std::clamp<std::int64_t>(bytes_of_row - done, 0, 16);
          const auto offset = static_cast<std::uintptr_t>(done);
          copy(swizzled(shared + offset), global + offset, static_cast<std::size_t>(bytes));
        }
      });
}

/// Counts what the copy of a box costs on either side, for a traced launch, which checks nothing.
void count_box(const void* box, const BoxedTensor& t, const int (&at)[4], bool is_load,
               ProgramPoint point) {
  const auto count = [&](MemorySpace space, std::uintptr_t address, std::int64_t bytes,
                         bool reads) {
    running_thread.tracer->copied_row(space, address, static_cast<std::size_t>(bytes),
                                      reads ? AccessKind::read : AccessKind::write, point);
  };
  for_each_row(box, t, at, [&](std::uintptr_t shared, std::uintptr_t global, std::int64_t bytes) {
    // What lies outside the tensor is written to shared memory, as 0.
    if (is_load || bytes > 0) {
      count(MemorySpace::shared, shared, is_load ? row_bytes : bytes, !is_load);
    }
    if (bytes > 0) count(MemorySpace::global, global, bytes, is_load);
  });
}

/// Counts what the copy of bytes side by side costs, for a traced launch.
void count_bytes(MemorySpace space, std::uintptr_t address, std::size_t bytes, AccessKind kind,
                 ProgramPoint point) {
  for (std::size_t done = 0; done < bytes; done += row_bytes) {
    running_thread.tracer->copied_row(space, address + done,
                                      std::min<std::size_t>(row_bytes, bytes - done), kind, point);
  }
}

std::uint16_t bits_at(std::uintptr_t address) {
  std::uint16_t bits;
  std::memcpy(&bits, reinterpret_cast<const void*>(swizzled(address)), sizeof bits);
  return bits;
}

/// Element (i, k) of an operand whose sum runs over k.
std::uint16_t element(const MatrixDescriptor& of, bool is_mn, unsigned i, unsigned k) {
  const auto base = reinterpret_cast<std::uintptr_t>(of.address);
  if (!is_mn) return bits_at(base + i * 128U + k * 2U);
  return bits_at(base + std::uintptr_t{i / 64} * of.leading_bytes + k * 128U + i % 64 * 2U);
}

/// Numbers in 16 bits of an operand: one of 16 bits, or two codes, the first in the low byte.
struct HalfUnit {
  static constexpr ElementType type = ElementType::fp16;
  static constexpr unsigned count = 1;
  static void read(std::uint16_t bits, float* to) { *to = half_value(bits); }
  static Accumulation accumulation() { return hopper(); }
};
struct Bfloat16Unit {
  static constexpr ElementType type = ElementType::bf16;
  static constexpr unsigned count = 1;
  static void read(std::uint16_t bits, float* to) { *to = bfloat16_value(bits); }
  static Accumulation accumulation() { return hopper(); }
};
struct E4m3Unit {
  static constexpr ElementType type = ElementType::e4m3;
  static constexpr unsigned count = 2;
  static void read(std::uint16_t bits, float* to) {
    static const std::array<float, 256> values = [] {
      std::array<float, 256> all;
      for (unsigned code = 0; code < 256; ++code) all[code] = decode(ElementType::e4m3, code);
      return all;
    }();
    to[0] = values[bits & 0xffU];
    to[1] = values[bits >> 8];
  }
  static Accumulation accumulation() { return hopper_fp8(); }
};

/// `results`: of each thread, what d will hold when the products before are done.
template <typename Numbers>
void multiply(const GroupProduct* const* threads, float* const* results) {
  constexpr unsigned depth = 16 * Numbers::count;
  const GroupProduct& first = *threads[0];
  const auto n = static_cast<unsigned>(first.n);
  std::array<std::array<float, depth>, 64> a;
  const auto read_left = [&](unsigned row, unsigned unit, std::uint16_t bits) {
    Numbers::read(bits, &a[row][Numbers::count * unit]);
  };
  for (unsigned t = 0; t < 128; ++t) {
    const GroupProduct& mine = *threads[t];
    if (mine.a_registers == nullptr) continue;
    const unsigned row = t / 32 * 16 + t % 32 / 4, unit = t % 4 * 2;
    for (unsigned r = 0; r < 4; ++r) {
      for (unsigned h = 0; h < 2; ++h) {
        read_left(row + 8 * (r % 2), unit + 8 * (r / 2) + h,
                  static_cast<std::uint16_t>(mine.a_registers[r] >> 16 * h));
      }
    }
  }
  if (first.a_registers == nullptr) {
    for (unsigned i = 0; i < 64; ++i)
      for (unsigned k = 0; k < 16; ++k) read_left(i, k, element(first.a, first.is_a_mn, i, k));
  }
  std::vector<float> b(std::size_t{depth} * n);
  for (unsigned k = 0; k < 16; ++k) {
    for (unsigned j = 0; j < n; ++j) {
      std::array<float, Numbers::count> numbers;
      Numbers::read(element(first.b, first.is_b_mn, j, k), numbers.data());
      for (unsigned i = 0; i < Numbers::count; ++i)
        b[std::size_t{Numbers::count * k + i} * n + j] = numbers[i];
    }
  }
  const ProductOperand right(std::move(b), n, Numbers::type);
  const Accumulation accumulation = Numbers::accumulation();
  std::vector<float> sums(n);
  for (unsigned row = 0; row < 64; ++row) {
    // Element (row, 8 j + 2 t + e) lies in thread first_thread + t, at 4 j + 2 half + e.
    const unsigned first_thread = row / 16 * 32 + row % 8 * 4, half = row % 16 / 8;
    const auto for_each_sum = [&](const auto& visit) {
      for (unsigned t = 0; t < 4; ++t) {
        float* const held = results[first_thread + t] + 2 * half;
        for (unsigned j = 0; j < n / 8; ++j)
          for (unsigned e = 0; e < 2; ++e) visit(sums[8 * j + 2 * t + e], held[4 * j + e]);
      }
    };
    for_each_sum([&](float& sum, float& held) { sum = first.adds ? held : 0.0F; });
    accumulate_tensor_core(accumulation, a[row], Numbers::type, right, 0, sums);
    for_each_sum([](float& sum, float& held) { held = sum; });
  }
}

decltype(&multiply<HalfUnit>) multiply_for(ElementType type) {
  switch (type) {
    case ElementType::fp16:
      return multiply<HalfUnit>;
    case ElementType::bf16:
      return multiply<Bfloat16Unit>;
    case ElementType::e4m3:
      return multiply<E4m3Unit>;
    default:
      break;
  }
  no_version_for(type);
}

}  // namespace

void init_mbarrier(void* barrier, unsigned arrivals) {
  running_thread.runner->init_mbarrier(barrier, arrivals);
}
void arrive_mbarrier(void* barrier, unsigned bytes) {
  running_thread.runner->arrive_mbarrier(barrier, bytes);
}
void arrive_after_copies(void* barrier) {
  running_thread.runner->arrive_after_copies(barrier);
}
void wait_mbarrier(void* barrier, unsigned parity, const char* file, int line) {
  running_thread.runner->wait_mbarrier(barrier, parity, file, line);
}
void meet_named_barrier(int id, unsigned threads, bool waits, const char* file, int line) {
  running_thread.runner->meet_named_barrier(id, threads, waits, file, line);
}

void load_box(void* target, const TensorMap& map, const int (&at)[4], void* barrier) {
  const ProgramPoint point = point_of(__builtin_return_address(0));
  const auto to = reinterpret_cast<std::uintptr_t>(target);
  if (to % 128 != 0) return report_misaligned(to, 128, Access::write, point);
  const auto bytes = static_cast<std::size_t>(map.tensor.box_rows * row_bytes);
  if (running_thread.tracer != nullptr) {
    count_box(target, map.tensor, at, true, point);
  } else {
    check_range(to, bytes, Access::write, point);
    if (!forget_shared(to, bytes)) return;
  }
  std::memset(target, 0xff, bytes);  // a NaN in every floating-point format
  running_thread.runner->add_copy(
      {target, bytes, nullptr, map.tensor, {at[0], at[1], at[2], at[3]}, barrier, point});
}

void load_bytes(void* target, const void* source, unsigned bytes, void* barrier) {
  const ProgramPoint point = point_of(__builtin_return_address(0));
  const auto to = reinterpret_cast<std::uintptr_t>(target);
  const auto from = reinterpret_cast<std::uintptr_t>(source);
  if (to % 16 != 0) return report_misaligned(to, 16, Access::write, point);
  if ((from | bytes) % 16 != 0) return report_misaligned(from | bytes, 16, Access::read, point);
  if (running_thread.tracer != nullptr) {
    count_bytes(MemorySpace::shared, to, bytes, AccessKind::write, point);
    count_bytes(MemorySpace::global, from, bytes, AccessKind::read, point);
  } else {
    check_range(to, bytes, Access::write, point);
    if (!forget_shared(to, bytes)) return;
  }
  std::memset(target, 0xff, bytes);
  running_thread.runner->add_copy({target, bytes, source, {}, {}, barrier, point});
}

void deliver(const BulkCopy& copy) {
  if (copy.source != nullptr) {
    if (running_thread.tracer == nullptr) {
      check_range(reinterpret_cast<std::uintptr_t>(copy.source), copy.bytes, Access::read,
                  copy.point);
      check_range(reinterpret_cast<std::uintptr_t>(copy.target), copy.bytes, Access::write,
                  copy.point);
    }
    std::memcpy(copy.target, copy.source, copy.bytes);
    return;
  }
  for_each_chunk(copy.target, copy.tensor, copy.at,
                 [&](std::uintptr_t shared, std::uintptr_t global, std::size_t bytes) {
                   if (running_thread.tracer == nullptr) {  // else it was counted when asked for
                     if (bytes != 0) check_range(global, bytes, Access::read, copy.point);
                     check_range(shared, 16, Access::write, copy.point);
                   }
                   auto* const chunk = reinterpret_cast<char*>(shared);
                   std::memset(chunk, 0, 16);
                   std::memcpy(chunk, reinterpret_cast<const void*>(global), bytes);
                 });
}

void store_box(const TensorMap& map, const int (&at)[4], const void* source) {
  const ProgramPoint point = point_of(__builtin_return_address(0));
  const bool is_traced = running_thread.tracer != nullptr;
  if (is_traced) count_box(source, map.tensor, at, false, point);
  for_each_chunk(
      source, map.tensor, at, [&](std::uintptr_t shared, std::uintptr_t global, std::size_t bytes) {
        if (bytes == 0) return;
        // A whole chunk even where the tensor's row ends in it, as an H200 does.
        if (!is_traced) {
          check_range(shared, 16, Access::read, point);
          check_range(global, 16, Access::write, point);
        }
        std::memcpy(reinterpret_cast<void*>(global), reinterpret_cast<const void*>(shared), 16);
      });
}

namespace {

void add_words(std::uint32_t* target, const void* source, unsigned bytes, bool of_integers,
               ProgramPoint point) {
  const auto to = reinterpret_cast<std::uintptr_t>(target);
  const auto from = reinterpret_cast<std::uintptr_t>(source);
  if (from % 16 != 0) return report_misaligned(from, 16, Access::read, point);
  if ((to | bytes) % 16 != 0) return report_misaligned(to | bytes, 16, Access::atomic, point);
  if (running_thread.tracer != nullptr) {
    count_bytes(MemorySpace::shared, from, bytes, AccessKind::read, point);
    count_bytes(MemorySpace::global, to, bytes, AccessKind::write, point);
  } else {
    check_range(from, bytes, Access::read, point);
    check_range(to, bytes, Access::atomic, point);
  }
  running_thread.runner->add_sum(
      {target, source, {}, bytes / sizeof(float), 0, 0, of_integers, false, point});
}

}  // namespace

void add_bytes(float* target, const void* source, unsigned bytes) {
  add_words(reinterpret_cast<std::uint32_t*>(target), source, bytes, false,
            point_of(__builtin_return_address(0)));
}
void add_bytes(std::int32_t* target, const void* source, unsigned bytes) {
  add_words(reinterpret_cast<std::uint32_t*>(target), source, bytes, true,
            point_of(__builtin_return_address(0)));
}

void commit_bulk() {
  running_thread.runner->commit_sums();
}
void wait_for_bulk(bool until_read, unsigned newest) {
  running_thread.runner->wait_for_sums(until_read, newest);
}

void read_terms(BulkSum& sum) {
  sum.terms.resize(sum.count);
  std::memcpy(sum.terms.data(), sum.source, sum.count * sizeof(float));
  sum.is_read = true;
}

void add_terms(const BulkSum& sum) {
  const auto flushed = [](float x) {
    return std::fabs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x;
  };
  const auto added = [&](std::uint32_t a, std::uint32_t b) {
    if (sum.of_integers) return a + b;
    return std::bit_cast<std::uint32_t>(
        flushed(flushed(std::bit_cast<float>(a)) + flushed(std::bit_cast<float>(b))));
  };
  for (std::size_t i = 0; i < sum.count; ++i) {
    // Other OS threads may add to the same place.
    std::uint32_t old = __atomic_load_n(sum.target + i, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(sum.target + i, &old, added(old, sum.terms[i]), false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }
}

void multiply_group(const GroupProduct& mine, const char* file, int line) {
  running_thread.runner->multiply_group(mine, multiply_for(mine.type), file, line);
}

void commit_products() {
  running_thread.runner->commit_products();
}
void wait_for_products(unsigned newest) {
  running_thread.runner->wait_for_products(newest);
}

}  // namespace attest::simt
