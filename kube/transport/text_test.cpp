// The small notations of this folder: headers, base64.
#include <gtest/gtest.h>

#include "kube/transport/base64.h"
#include "kube/transport/http_headers.h"

namespace fettle::kube {
namespace {

TEST(HttpHeaders, Warnings) {
  struct Case {
    const char* header;
    std::vector<std::string> texts;
  };
  const Case cases[] = {
      {"299 - \"one\"", {"one"}},
      {"299 - \"one\", 299 - \"two, three\"", {"one", "two, three"}},
      {"299 - \"a \\\"quoted\\\" word\"", {"a \"quoted\" word"}},
      {"299 - \"one\" \"Sat, 25 Aug 2012 23:34:45 GMT\", 299 - \"two\"", {"one", "two"}},
      {"299 - \"no end", {}},
      {"299 - none", {}},
      {"", {}},
  };
  for (const Case& test : cases) EXPECT_EQ(read_warnings(test.header), test.texts) << test.header;
}

TEST(HttpHeaders, RetryAfter) {
  using std::chrono::seconds;
  EXPECT_EQ(read_retry_after("7"), seconds(7));
  EXPECT_EQ(read_retry_after("0"), seconds(0));
  EXPECT_EQ(read_retry_after("99999999999999999999999"), seconds(86400));
  for (const char* const bad : {"", "-1", "1.5", "soon", "Wed, 21 Oct 2015 07:28:00 GMT"}) {
    EXPECT_EQ(read_retry_after(bad), std::nullopt) << bad;
  }
}

TEST(HttpHeaders, Date) {
  EXPECT_EQ(read_date("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
  EXPECT_EQ(read_date("Sun, 06 Nov 1994 08:49:37 GMT"), 784'111'777'000);
  EXPECT_EQ(read_date("Thu, 29 Feb 2024 23:59:59 GMT"), 1'709'251'199'000);
  for (const char* const bad :
       {"", "soon", "1994-11-06T08:49:37Z", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1994 08:49:37 GM",
        "Sun, 06 Nov 1994 08:49:37 GMT ", "Sun, 06 anF 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 19x4 08:49:37 GMT", "Sun, 06-Nov-1994 08:49:37 GMT"}) {
    EXPECT_EQ(read_date(bad), std::nullopt) << bad;
  }
}

TEST(Base64, OfRfc4648) {
  struct Case {
    const char* bytes;
    const char* text;
  };
  const Case cases[] = {{"", ""},
                        {"f", "Zg=="},
                        {"fo", "Zm8="},
                        {"foo", "Zm9v"},
                        {"foob", "Zm9vYg=="},
                        {"fooba", "Zm9vYmE="},
                        {"foobar", "Zm9vYmFy"},
                        {"\xff\xfe\xfd?", "//79Pw=="}};
  for (const Case& test : cases) {
    EXPECT_EQ(encode_base64(test.bytes), test.text);
    EXPECT_EQ(decode_base64(test.text), test.bytes);
  }
  EXPECT_EQ(decode_base64("Zm9v\nYmFy\r\n"), "foobar");
  for (const char* const bad : {"Z", "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9v!", "Zm 9v"}) {
    EXPECT_EQ(decode_base64(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace fettle::kube
