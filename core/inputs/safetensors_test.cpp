#include "core/inputs/safetensors.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/temporary_folder.hpp"

namespace attest {
namespace {

std::string file_text(const std::string& header, const std::string& data) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>((header.size() >> (8 * i)) & 0xff);
  return text + header + data;
}

/// A file that is deleted at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& contents) {
    std::ofstream(path_, std::ios::binary) << contents;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "x.safetensors";
};

/// The message with which the file is refused; empty when it is accepted.
std::string refusal(const std::string& contents) {
  const TemporaryFile file(contents);
  try {
    (void)Safetensors::from_file(file.path());
  } catch (const InvalidInput& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(file.path().string()), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  return "";
}

/// The refusal of a file with four bytes of data and this header.
std::string header_refusal(const std::string& header) {
  return refusal(file_text(header, std::string(4, '\0')));
}

testing::AssertionResult says(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "message '" << message << "' lacks '" << part << "'";
}

TEST(Safetensors, values_and_shapes_of_every_element_type_are_read_exactly) {
  const std::string header = R"({"half":{"dtype":"F16","shape":[2],"data_offsets":[4,8]},)"
                             R"("b":{"dtype":"BF16","shape":[2,1],"data_offsets":[8,12]},)"
                             R"("whole":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                             R"("none":{"dtype":"F32","shape":[3,0],"data_offsets":[12,12]},)"
                             R"("__metadata__":{"maker":"test"}}  )";
  // 1.5f; half 1 and -2; bfloat16 -inf and 3.
  const std::string data("\x00\x00\xc0\x3f\x00\x3c\x00\xc0\x80\xff\x40\x40", 12);
  const TemporaryFile file(file_text(header, data));
  const Safetensors tensors = Safetensors::from_file(file.path());
  ASSERT_EQ(tensors.entries().size(), 4U);
  EXPECT_EQ(tensors.values(*tensors.find("whole")), std::vector<float>{1.5F});
  EXPECT_EQ(tensors.values(*tensors.find("half")), (std::vector<float>{1.0F, -2.0F}));
  EXPECT_EQ(tensors.values(*tensors.find("b")),
            (std::vector<float>{-std::numeric_limits<float>::infinity(), 3.0F}));
  EXPECT_EQ(tensors.find("b")->shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_TRUE(tensors.values(*tensors.find("none")).empty());
  EXPECT_EQ(tensors.find("absent"), nullptr);
  EXPECT_EQ(tensors.metadata().at("maker"), "test");
}

TEST(Safetensors, nan_is_a_value_like_any_other) {
  const std::string header = R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const TemporaryFile file(file_text(header, std::string("\x00\x00\xc0\x7f", 4)));
  const Safetensors tensors = Safetensors::from_file(file.path());
  EXPECT_TRUE(std::isnan(tensors.values(tensors.entries().front()).front()));
}

TEST(Safetensors, a_file_without_tensors_is_legal) {
  EXPECT_EQ(refusal(file_text("{}", "")), "");
}

TEST(Safetensors, a_missing_file_and_a_directory_are_named) {
  const TemporaryFolder folder;
  for (const std::string& path : {(folder / "absent").string(), folder.path().string()}) {
    try {
      (void)Safetensors::from_file(path);
      FAIL() << path;
    } catch (const InvalidInput& error) {
      EXPECT_TRUE(says(std::string(error.what()), path));
    }
  }
}

TEST(Safetensors, a_file_too_short_for_the_header_length_is_refused) {
  EXPECT_TRUE(says(refusal(""), "has 0 bytes; allowed: at least 8"));
  EXPECT_TRUE(says(refusal("1234567"), "has 7 bytes; allowed: at least 8"));
}

TEST(Safetensors, a_header_that_ends_past_the_file_is_refused) {
  EXPECT_TRUE(says(refusal(std::string("\x03\0\0\0\0\0\0\0{}", 10)), "length is 3 bytes"));
  // 2^64 - 1: adding the 8 bytes before it would wrap around.
  EXPECT_TRUE(says(refusal(std::string(8, '\xff') + "{}"), "length is 18446744073709551615 bytes"));
}

TEST(Safetensors, a_header_that_is_not_a_json_object_is_refused) {
  EXPECT_TRUE(says(header_refusal(""), "not JSON"));
  EXPECT_TRUE(says(header_refusal("{\"a\":\n}"), "not JSON: wrong at its byte 7"));
  EXPECT_TRUE(says(header_refusal("{\"\xff\":1}"), "not JSON"));
  EXPECT_TRUE(says(header_refusal("[1, 2]"), "the header is [1,2]; allowed: a JSON object"));
  EXPECT_TRUE(says(header_refusal(std::string(100000, '[')), "nested deeper than 64"));
  EXPECT_TRUE(says(header_refusal("{\"a\":1e999}"), "a number that is too large"));
}

TEST(Safetensors, a_name_given_twice_is_refused) {
  const std::string entry = R"("x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_TRUE(says(header_refusal("{" + entry + "," + entry + "}"), "name 'x' is given twice"));
}

TEST(Safetensors, metadata_that_is_not_strings_is_refused) {
  EXPECT_TRUE(says(header_refusal(R"({"__metadata__":{"a":1}})"), "__metadata__ is {\"a\":1}"));
  EXPECT_TRUE(says(header_refusal(R"({"__metadata__":[]})"), "__metadata__ is []"));
}

TEST(Safetensors, a_tensor_needs_exactly_dtype_shape_and_offsets) {
  EXPECT_TRUE(says(header_refusal(R"({"x":3})"), "tensor 'x': is described by 3"));
  EXPECT_TRUE(
      says(header_refusal(R"({"x":{"dtype":"F32","shape":[1]}})"), "tensor 'x': is described"));
  EXPECT_TRUE(
      says(header_refusal(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"stride":1}})"),
           "allowed: an object of dtype, shape and data_offsets"));
}

TEST(Safetensors, an_unknown_element_type_is_refused) {
  for (const std::string dtype : {R"("F64")", R"("f32")", "null", "[32]"}) {
    EXPECT_TRUE(
        says(header_refusal(R"({"x":{"dtype":)" + dtype + R"(,"shape":[1],"data_offsets":[0,4]}})"),
             "dtype is " + dtype + "; allowed: F32, F16, BF16"));
  }
}

TEST(Safetensors, a_shape_must_be_whole_numbers_whose_product_fits) {
  const auto with_shape = [](const std::string& shape) {
    return header_refusal(R"({"x":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,4]}})");
  };
  for (const std::string shape : {"1", "[-1]", "[1.0]", "[\"1\"]", "[9223372036854775808]"}) {
    EXPECT_TRUE(says(with_shape(shape), "tensor 'x': shape is " + shape));
  }
  EXPECT_TRUE(says(with_shape("[4294967296,4294967296]"), "more bytes than 2^63 - 1"));
  EXPECT_TRUE(says(with_shape("[2305843009213693952]"), "more bytes than 2^63 - 1"));
  EXPECT_TRUE(says(with_shape("[2]"), "span 4 bytes; allowed: 8"));
  EXPECT_TRUE(says(with_shape("[0,9223372036854775807]"), "span 4 bytes; allowed: 0"));
  EXPECT_TRUE(says(with_shape("[4294967296,4294967296,0]"), "span 4 bytes; allowed: 0"));
  EXPECT_EQ(with_shape("[1]"), "");
}

TEST(Safetensors, offsets_must_lie_in_the_file) {
  const auto with_offsets = [](const std::string& offsets) {
    return header_refusal(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":)" + offsets + "}}");
  };
  for (const std::string offsets : {"[0]", "[0,4,8]", "[1,5]", "[4,0]", "[4,8]"}) {
    EXPECT_TRUE(says(with_offsets(offsets), "allowed: begin and end with 0 <= begin <= end <= 4"));
  }
  EXPECT_TRUE(says(with_offsets("[-4,0]"), "data_offsets is [-4,0]"));
  EXPECT_TRUE(says(with_offsets("[0,3]"), "span 3 bytes; allowed: 4"));
}

TEST(Safetensors, tensors_may_neither_overlap_nor_leave_gaps) {
  const auto two = [](const std::string& first, const std::string& second) {
    return header_refusal(R"({"a":{"dtype":"F16","shape":[1],"data_offsets":)" + first +
                          R"(},"b":{"dtype":"F16","shape":[1],"data_offsets":)" + second + "}}");
  };
  EXPECT_EQ(two("[2,4]", "[0,2]"), "");
  EXPECT_TRUE(says(two("[0,2]", "[1,3]"), "tensor 'b': begins at byte 1; allowed: 2"));
  EXPECT_TRUE(says(two("[0,2]", "[0,2]"), "begins at byte 0; allowed: 2"));
  EXPECT_TRUE(says(header_refusal(R"({"a":{"dtype":"F16","shape":[1],"data_offsets":[2,4]}})"),
                   "tensor 'a': begins at byte 2; allowed: 0"));
  EXPECT_TRUE(says(header_refusal(R"({"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})"),
                   "end at byte 2 of the data; allowed: 4"));
}

TEST(Safetensors, names_with_control_characters_stay_on_one_line) {
  EXPECT_TRUE(says(header_refusal(R"({"a\nb\u001b":3})"), "tensor 'a?b?'"));
  EXPECT_TRUE(says(header_refusal("{\"" + std::string(500, 'x') + "\":3}"),
                   "tensor '" + std::string(60, 'x') + "...'"));
}

TEST(Safetensors, every_truncation_of_a_good_file_is_refused) {
  const std::string good = file_text(R"({"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})",
                                     std::string(24, '\1'));
  ASSERT_EQ(refusal(good), "");
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(refusal(good.substr(0, size)), "") << "first " << size << " bytes";
  }
  EXPECT_NE(refusal(good + "1"), "");
}

TEST(Safetensors, any_changed_byte_gives_a_file_or_a_refusal_and_nothing_else) {
  const std::string good = file_text(
      R"({"x":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]},"__metadata__":{"a":"b"}})",
      std::string(4, '\1'));
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::vector<std::byte> bytes(good.size());
      std::ranges::transform(good, bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
      bytes[at] = static_cast<std::byte>(value);
      try {
        const Safetensors file = Safetensors::from_bytes(bytes, "changed");
        for (const SafetensorsEntry& entry : file.entries()) {
          ASSERT_EQ(std::ssize(file.values(entry)), entry.size());
        }
      } catch (const InvalidInput&) {
      }
    }
  }
}

}  // namespace
}  // namespace attest
