// Json: parse errors are located; dumped values read back as the same values.
#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/philox.h"

namespace fettle {
namespace {

using ::testing::HasSubstr;

Json parsed(std::string_view text) {
  const Result<Json> value = parse_json(text);
  CHECK(value.ok(), value.error().message);
  return *value;
}

TEST(Json, OneAndOnePointZeroAreOneNumber) {
  EXPECT_EQ(parsed("1"), parsed("1.0"));
  EXPECT_EQ(parsed("1e2"), Json(100));
  EXPECT_TRUE(parsed("3.0").is_integer());
  EXPECT_FALSE(parsed("3.5").is_integer());
}

TEST(Json, ObjectsKeepTheirOrderButCompareWithoutIt) {
  const Json value = parsed(R"({"b": 1, "a": [true, null, "x"]})");
  EXPECT_EQ(value.dump(), R"({"b":1,"a":[true,null,"x"]})");
  EXPECT_EQ(value, parsed(R"({"a": [true, null, "x"], "b": 1})"));
  EXPECT_NE(value, parsed(R"({"a": [true, null, "y"], "b": 1})"));
}

TEST(Json, SetReplacesAndEraseRemoves) {
  Json value;
  value.set("a", 1).set("b", 2).set("a", 3);
  EXPECT_EQ(value.dump(), R"({"a":3,"b":2})");
  value.erase("a");
  EXPECT_EQ(value.find("a"), nullptr);
}

TEST(Json, StringsKeepEveryCharacter) {
  const std::string text("quote \" slash \\ line\n tab\t bell\x07 nul\0 ü 🎯", 45);
  EXPECT_EQ(parsed(Json(text).dump()), Json(text));
  EXPECT_EQ(parsed(R"("\u00fc\ud83c\udfaf\/")"), Json("ü🎯/"));
}

TEST(Json, DoublesReadBackAsTheSameBits) {
  Random random(3);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t bits = random.bits64();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(parsed(Json(value).dump()).as_double(), value);
  }
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).dump(), "null");
  EXPECT_EQ(parsed("9223372036854775807").as_integer(), std::numeric_limits<std::int64_t>::max());
}

TEST(Json, ErrorsSayWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "line 1, column 1"},         {"{\"a\": 1,\n \"a\": 2}", "comes twice"},
      {"[1, 2", "expected ',' or ']'"}, {"[1 2]", "line 1, column 4"},
      {"{a: 1}", "line 1, column 2"},   {"01", "may not start with 0"},
      {"1e309", "outside the range"},   {"nul", "line 1, column 1"},
      {"NaN", "line 1, column 1"},      {"\"a\nb\"", "control character"},
      {"\"\\ud800\"", "surrogate"},     {"\"open", "without an end"},
      {"1 2", "expected the end"},
  };
  for (const auto& [text, message] : cases) {
    const Result<Json> value = parse_json(text);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_THAT(value.error().message, HasSubstr(message)) << text;
  }
}

TEST(Json, NestingIsBounded) {
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']')).ok());
  const Result<Json> deep = parse_json(std::string(10'000'000, '['));
  ASSERT_FALSE(deep.ok());
  EXPECT_THAT(deep.error().message, HasSubstr("deeper than 64 levels"));
}

TEST(Json, NumbersThatAreNotFiniteAreReadOnRequest) {
  JsonParseOptions options;
  options.allow_non_finite = true;
  for (const char* text : {"NaN", "nan", "-nan", "+nan", "NAN", "nan(ind)", "-nan(ind)"}) {
    const Result<Json> read = parse_json("[" + std::string(text) + "]", options);
    ASSERT_TRUE(read.ok()) << text;
    EXPECT_TRUE(std::isnan(read->as_array()[0].as_double())) << text;
    EXPECT_FALSE(parse_json(text).ok()) << text;
  }
  for (const char* text : {"Infinity", "inf", "+inf", "INF", "1e400", "1e99999"}) {
    EXPECT_EQ(parse_json(text, options)->as_double(), HUGE_VAL) << text;
    EXPECT_EQ(parse_json("-" + std::string(text + (*text == '+')), options)->as_double(),
              -HUGE_VAL);
    EXPECT_FALSE(parse_json(text).ok()) << text;
  }
  for (const char* text : {"nano", "info", "infinite", "-", "+1", "n", "{\"a\": nan1}"}) {
    EXPECT_FALSE(parse_json(text, options).ok()) << text;
  }
}

TEST(Json, EveryPrefixOfATextIsAnswered) {
  const std::string text = R"({"a": [1, -2.5e3, "xü\n", {"b": null}], "c": true})";
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(parse_json(std::string_view(text).substr(0, size)).ok()) << size;
  }
}

}  // namespace
}  // namespace fettle
