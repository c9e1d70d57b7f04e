// UTF-8: the borders of RFC 3629.
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace fettle {
namespace {

TEST(Utf8, CharactersAreMeasuredAndDecoded) {
  const struct {
    std::string_view text;
    std::size_t length;
    char32_t code;
  } cases[] = {
      {"a", 1, U'a'},
      {"\x7F", 1, 0x7F},
      {"\xC2\x80", 2, 0x80},
      {"é", 2, U'é'},
      {"\xE0\xA0\x80", 3, 0x800},
      {"\xED\x9F\xBF", 3, 0xD7FF},
      {"\xF0\x90\x80\x80", 4, 0x10000},
      {"\xF4\x8F\xBF\xBF", 4, 0x10FFFF},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(utf8_length(c.text), c.length) << c.text;
    EXPECT_EQ(utf8_code_point(c.text), c.code) << c.text;
    EXPECT_TRUE(is_utf8(std::string(c.text) + "and more"));
  }
}

TEST(Utf8, AllElseIsNone) {
  for (const char* text : {"\x80", "\xC1\x81", "\xC3", "\xC3(", "\xE0\x80\x80", "\xED\xA0\x80",
                           "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_EQ(utf8_length(text), 0U) << text;
    EXPECT_FALSE(is_utf8(std::string("good until here ") + text));
  }
  EXPECT_EQ(utf8_length(""), 0U);
  EXPECT_TRUE(is_utf8(""));
}

TEST(Utf8, ExcerptsEndBetweenCharacters) {
  EXPECT_EQ(utf8_excerpt("abcdef", 6), "abcdef");
  EXPECT_EQ(utf8_excerpt("abcdefg", 6), "abc...");
  EXPECT_EQ(utf8_excerpt("äöüä", 8), "äöüä");
  EXPECT_EQ(utf8_excerpt("äöüä", 7), "äö...");
  EXPECT_EQ(utf8_excerpt("äöüä", 6), "ä...");
  EXPECT_EQ(utf8_excerpt("学習", 3), "...");
  EXPECT_EQ(utf8_excerpt("a\xFF\xC3", 9), "a??");
  EXPECT_EQ(utf8_excerpt("", 3), "");
}

}  // namespace
}  // namespace fettle
