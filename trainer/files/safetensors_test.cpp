#include "trainer/files/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace fettle::trainer {
namespace {

using testing::HasSubstr;

Bytes bytes_of(const std::string& text) {
  return Bytes::copy_of({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

Result<SafetensorsFile> parse(const std::string& text) {
  return SafetensorsFile::parse(bytes_of(text), "m.safetensors");
}

// A file with this header and `bytes` zeros behind it.
std::string file_with(const std::string& header, std::size_t bytes) {
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(bytes, '\0');
}

const std::vector<float> kWeights = {1, 2, 3, 4, 5, 6};
const std::vector<float> kBiases = {-1, 0.5};

std::string good_file() {
  return encode_safetensors({{"a.weight", {2, 3}, kWeights}, {"a.bias", {2}, kBiases}},
                            {{"format", "pt"}});
}

TEST(Safetensors, ReadBackWhatWasWritten) {
  const auto file = parse(good_file());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->metadata(), (SafetensorsMetadata{{"format", "pt"}}));
  ASSERT_EQ(file->entries().size(), 2U);
  EXPECT_EQ(*file->values("a.weight", {2, 3}), kWeights);
  EXPECT_EQ(*file->values("a.bias", {2}), kBiases);
  const std::vector<std::string> names = {"a.bias", "a.weight"};
  EXPECT_TRUE(file->expect_only(names).ok());
}

// The bytes that safetensors.numpy.save_file of 0.8.0 writes for {"b": two floats}.
TEST(Safetensors, AreByteForByteThoseOfTheLibrary) {
  std::string text =
      file_with("{\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}  ", 0);
  text.append(reinterpret_cast<const char*>(kBiases.data()), 8);
  EXPECT_EQ(encode_safetensors({{"b", {2}, kBiases}}, {}), text);
  const auto file = parse(text);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(*file->values("b", {2}), kBiases);
}

TEST(Safetensors, NameTheTensorThatDoesNotFit) {
  const auto file = parse(good_file());
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(file->values("a.scale", {2}).error().message,
              HasSubstr("m.safetensors: lacks the tensor \"a.scale\""));
  EXPECT_THAT(file->values("a.weight", {3, 2}).error().message,
              HasSubstr("has the shape [2,3], expected [3,2]"));
  const std::vector<std::string> names = {"a.weight"};
  EXPECT_THAT(file->expect_only(names).error().message, HasSubstr("has the tensor \"a.bias\""));
  const auto whole =
      parse(file_with("{\"h\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8));
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_THAT(whole->values("h", {2}).error().message,
              HasSubstr("dtype I32, expected F32, F16 or BF16"));
}

TEST(Safetensors, WidenNumbersOf16Bits) {
  const std::string header =
      "{\"h\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]},"
      "\"b\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[4,6]}}";
  std::string text = file_with(header, 6);
  text.replace(text.size() - 6, 6, std::string("\x00\x3c\x00\xc1\xc0\x3f", 6));
  const auto file = parse(text);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(*file->values("h", {2}), (std::vector<float>{1, -2.5F}));
  EXPECT_EQ(*file->values("b", {1}), (std::vector<float>{1.5F}));
}

TEST(Safetensors, RefuseSizesThatLie) {
  const auto one = [](const std::string& shape, const std::string& place, std::size_t bytes) {
    return file_with(
        "{\"t\":{\"dtype\":\"F32\",\"shape\":" + shape + ",\"data_offsets\":" + place + "}}",
        bytes);
  };
  ASSERT_TRUE(parse(one("[2]", "[0,8]", 8)).ok());
  ASSERT_TRUE(parse(one("[0]", "[0,0]", 0)).ok());
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "is cut: shorter than 8 bytes"},
           {std::string("\0\0\0\x40\0\0\0\0{}", 10), "header has 1073741824 bytes"},
           {std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), "18446744073709551615 bytes"},
           {std::string("\x09\0\0\0\0\0\0\0{}", 10), "its header ends behind the file"},
           {one("[2]", "[0,8]", 7), "it is cut"},
           {one("[2]", "[0,8]", 9), "has 9 bytes of tensors, expected 8"},
           {one("[3]", "[0,8]", 8), "cannot lie at the bytes 0 to 8"},
           {one("[2]", "[4,12]", 12), "begins at byte 4, expected 0"},
           {one("[2]", "[8,0]", 8), "cannot lie"},
           {one("[-2]", "[0,8]", 8), "cannot lie"},
           {one("[4294967296,4294967296]", "[0,0]", 0), "cannot lie"},
           {one("[0.5]", "[0,8]", 8), "lacks a dtype, a shape or two data_offsets"},
           {one("[2]", "[0]", 8), "lacks a dtype, a shape or two data_offsets"},
           {file_with("[]", 0), "not an object"},
           {file_with("{\"t\":1}", 0), "\"t\" is not an object"},
           {file_with("{\"__metadata__\":{\"a\":1}}", 0), "metadata \"a\" is not a text"},
           {file_with("{\"t\":{\"dtype\":\"F7\",\"shape\":[],\"data_offsets\":[0,4]}}", 4),
            "unknown dtype \"F7\""}}) {
    const auto file = parse(text);
    ASSERT_FALSE(file.ok()) << words;
    EXPECT_EQ(file.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(file.error().message, HasSubstr(words));
  }
}

TEST(Safetensors, RefuseTensorsThatOverlap) {
  const auto file =
      parse(file_with("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                      "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
                      6));
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message, HasSubstr("begins at byte 2, expected 4"));
}

// No damage crashes the reader (under the sanitizers, reads outside the file), and whatever it
// accepts can be read as a whole.
TEST(Safetensors, SurviveDamage) {
  const std::string good = good_file();
  std::mt19937 random(7);  // NOLINT: the same damage each time
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.resize(std::max<std::size_t>(at, 1));
          break;
        case 2:
          text.erase(at, 1);
          break;
        default:
          text.insert(at, 1, "0123456789[]{}:,\"-"[random() % 18]);
          break;
      }
      if (text.empty()) text = "x";
    }
    const auto file = parse(text);
    if (!file.ok()) continue;
    for (const SafetensorsFile::Entry& entry : file->entries()) {
      const auto values = file->values(entry.name, entry.shape);
      EXPECT_TRUE(values.ok() || entry.type != "F32");
    }
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(parse(good.substr(0, size)).ok()) << size;
  }
}

}  // namespace
}  // namespace fettle::trainer
