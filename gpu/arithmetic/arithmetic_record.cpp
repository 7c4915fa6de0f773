#include "gpu/arithmetic/arithmetic_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <span>
#include <string>
#include <string_view>

#include "core/base/error.hpp"
#include "core/inputs/random.hpp"
#include "core/records/record.hpp"
#include "gpu/arithmetic/arithmetic_kernels.hpp"

namespace attest {
namespace {

/// Values on a device for as long as this lives.
template <typename T>
class OnDevice {
 public:
  OnDevice(Device& device, const std::vector<T>& values)
      : device_(device),
        count_(values.size()),
        start_(device.upload_values(std::as_bytes(std::span<const T>(values)))) {}
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { device_.release(start_); }

  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(start_); }
  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> values(count_);
    device_.download(start_, std::as_writable_bytes(std::span<T>(values)));
    return values;
  }

 private:
  Device& device_;
  std::size_t count_;
  std::byte* start_;
};

/// Each word in hexadecimal digits, as many for all.
template <typename Word>
std::string hex_of(const std::vector<Word>& words) {
  std::string text;
  for (const Word word : words) text += fmt::format("{:0{}x}", word, 2 * sizeof(Word));
  return text;
}

template <typename Word>
std::vector<Word> words_of(std::string_view text, const std::string& where) {
  constexpr std::size_t digits = 2 * sizeof(Word);
  std::vector<Word> words;
  for (std::size_t at = 0; at < text.size(); at += digits) {
    const std::string_view piece = text.substr(at, digits);
    Word word = 0;
    const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), word, 16);
    if (error != std::errc() || piece.size() != digits || end != piece.data() + digits) {
      throw InvalidInput(
          fmt::format("{}: '{}' is not {} hexadecimal digits", where, piece, digits));
    }
    words.push_back(word);
  }
  return words;
}

std::string instruction_of(ElementType type) {
  switch (type) {
    case ElementType::fp16:
      return "mma.m16n8k16.fp16";
    case ElementType::bf16:
      return "mma.m16n8k16.bf16";
    case ElementType::fp32:
      return "mma.m16n8k8.tf32";
    default:
      break;
  }
  no_version_for(type);
}

constexpr std::string_view exp2_instruction = "ex2.approx.ftz";

const std::string& label(const Record& record, const std::string& name, const std::string& where) {
  const auto found = record.labels.find(name);
  if (found == record.labels.end()) {
    throw InvalidInput(fmt::format("{}: no label '{}'", where, name));
  }
  return found->second;
}

ProductRecord products_of(const Record& record, const std::string& where) {
  ProductRecord made;
  bool is_known = false;
  for (const ElementType type : {ElementType::fp32, ElementType::fp16, ElementType::bf16}) {
    for (int k = 0; k < operand_kinds; ++k) {
      const auto kind = static_cast<OperandKind>(k);
      if (label(record, "instruction", where) == instruction_of(type) &&
          label(record, "operands", where) == name_of(kind)) {
        made.type = type;
        made.kind = kind;
        is_known = true;
      }
    }
  }
  if (!is_known) throw InvalidInput(where + ": an instruction or operands that are not known");
  made.hashes = words_of<std::uint64_t>(label(record, "hashes", where), where);
  made.samples = words_of<std::uint32_t>(label(record, "samples", where), where);
  return made;
}

}  // namespace

std::uint64_t hash_of(std::span<const std::uint32_t> words) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < words.size(); ++i) hash = random_bits(hash, i, words[i]);
  return hash;
}

ProductRecord record_products(Executor executor, Device& device, ElementType type, OperandKind kind,
                              std::size_t sample_blocks) {
  const MmaOperands operands = mma_operands(type, kind, recorded_blocks);
  const OnDevice a(device, operands.a), b(device, operands.b);
  const OnDevice c(device, operands.c), d(device, operands.c);
  arithmetic_kernels(executor).launch_products(device, type, a.data(), b.data(), c.data(), d.data(),
                                               recorded_blocks);
  std::vector<std::uint32_t> bits;
  for (const float value : d.read()) bits.push_back(std::bit_cast<std::uint32_t>(value));

  ProductRecord record{.type = type, .kind = kind};
  const std::span<const std::uint32_t> all(bits);
  for (std::size_t at = 0; at < all.size(); at += block_outputs) {
    record.hashes.push_back(hash_of(all.subspan(at, block_outputs)));
  }
  const auto samples = all.last(std::min(all.size(), sample_blocks * block_outputs));
  record.samples.assign(samples.begin(), samples.end());
  return record;
}

Exp2Record record_exponentials(Executor executor, Device& device, unsigned part) {
  const OnDevice sum(device, std::vector<unsigned long long>(1));
  arithmetic_kernels(executor).launch_exp2_marks(device, part, sum.data());
  return {.part = part, .sum = sum.read().front()};
}

ArithmeticRecord read_arithmetic_record(const std::filesystem::path& path) {
  ArithmeticRecord made;
  const RecordFile file = read_records(path);
  for (std::size_t i = 0; i < file.records.size(); ++i) {
    const Record& record = file.records[i];
    const std::string where = fmt::format("{}: record {}", path.string(), i + 1);
    if (record.kind != "arithmetic") {
      throw InvalidInput(fmt::format("{}: the kind is '{}', not 'arithmetic'", where, record.kind));
    }
    if (label(record, "instruction", where) != exp2_instruction) {
      made.products.push_back(products_of(record, where));
      continue;
    }
    const auto sums = words_of<std::uint64_t>(label(record, "sums", where), where);
    for (const std::uint64_t sum : sums) {
      made.exponentials.push_back(
          {.part = static_cast<unsigned>(made.exponentials.size()), .sum = sum});
    }
  }
  return made;
}

void write_arithmetic_record(const ArithmeticRecord& record, const Device& device,
                             const std::filesystem::path& path) {
  RecordWriter writer(path);
  const Provenance provenance = current_provenance(device.description());
  for (const ProductRecord& product : record.products) {
    writer.write({.kind = "arithmetic",
                  .labels = {{"instruction", instruction_of(product.type)},
                             {"operands", std::string(name_of(product.kind))},
                             {"hashes", hex_of(product.hashes)},
                             {"samples", hex_of(product.samples)}},
                  .provenance = provenance});
  }
  std::vector<std::uint64_t> sums;
  for (const Exp2Record& of : record.exponentials) sums.push_back(of.sum);
  writer.write({.kind = "arithmetic",
                .labels = {{"instruction", std::string(exp2_instruction)}, {"sums", hex_of(sums)}},
                .provenance = provenance});
  writer.close();
}

}  // namespace attest
