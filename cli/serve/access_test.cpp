// Who may read the pages, and who may not.
#include "cli/serve/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace fettle::cli {
namespace {

using testing::HasSubstr;

constexpr const char* kToken = "0123456789abcdef0123";

Access access() { return {kToken, "fettle-ab"}; }

HttpRequest request(std::map<std::string, std::string, std::less<>> headers,
                    const std::string& token = "") {
  HttpRequest made{"/study/digits", {}, std::move(headers)};
  made.headers.try_emplace("host", "127.0.0.1:8338");
  if (!token.empty()) made.query["token"] = token;
  return made;
}

std::string cookie(const std::string& token = kToken) { return "fettle-ab=" + token; }

std::string header_of(const HttpAnswer& answer, const std::string& name) {
  const auto found = std::ranges::find(answer.headers, name, [](const auto& h) { return h.first; });
  return found == answer.headers.end() ? "" : found->second;
}

TEST(Access, IsGivenToTheCookieAndToABearer) {
  for (const auto& [header, value] : {
           std::pair<std::string, std::string>("cookie", cookie()),
           {"cookie", "a=b; " + cookie() + "; fettle-ac=x"},
           {"authorization", std::string("Bearer ") + kToken},
       }) {
    EXPECT_FALSE(access().refuse(request({{header, value}}))) << header << ": " << value;
  }
}

TEST(Access, IsRefusedWithoutTheRightToken) {
  for (const auto& [header, value] : {
           std::pair<std::string, std::string>("x", ""),
           {"cookie", ""},
           {"cookie", "fettle-ab"},
           {"cookie", cookie("0123456789abcdef0124")},
           {"cookie", cookie(std::string(kToken) + "0")},
           {"cookie", std::string("fettle-ac=") + kToken},
           {"cookie", std::string("xfettle-ab=") + kToken},
           {"authorization", kToken},
           {"authorization", "Bearer "},
           {"authorization", "Basic 0123456789abcdef0123"},
       }) {
    const auto refused = access().refuse(request({{header, value}}));
    ASSERT_TRUE(refused) << header << ": " << value;
    EXPECT_EQ(refused->status, 403);
    EXPECT_THAT(refused->body, HasSubstr("open the address that was printed"));
  }
}

TEST(Access, MovesTheTokenOfTheAddressToACookie) {
  const auto answer = access().refuse(request({}, kToken));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(header_of(*answer, "Set-Cookie"), cookie() + "; Path=/; HttpOnly; SameSite=Strict");
  EXPECT_EQ(header_of(*answer, "Refresh"), "0; url=/study/digits");
}

TEST(Access, SendsNobodyElsewhere) {
  for (const char* path : {"//evil.example/x", "/x;url=//evil.example", "/x y", "/\"", "/a?b"}) {
    HttpRequest asked = request({}, kToken);
    asked.path = path;
    EXPECT_EQ(header_of(*access().refuse(asked), "Refresh"), "0; url=/") << path;
  }
}

TEST(Access, RefusesAWrongTokenInTheAddress) {
  const auto answer = access().refuse(request({{"cookie", cookie()}}, "00000000000000000000"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 403);
  EXPECT_EQ(header_of(*answer, "Set-Cookie"), "");
}

TEST(Access, RefusesAForeignHostThoughTheCookieIsRight) {
  for (const char* host :
       {"evil.example", "evil.example:8338", "127.0.0.1.evil.example", "localhost.evil.example",
        "127.0.0.1:8338@evil.example", "", "127.0.0.2", "localhost:", "[::1", "localhost:80x"}) {
    const auto refused = access().refuse(request({{"host", host}, {"cookie", cookie()}}));
    ASSERT_TRUE(refused) << host;
    EXPECT_EQ(refused->status, 403);
  }
}

TEST(Access, KnowsTheNamesOfThisMachineWithAnyPort) {
  for (const char* host : {"127.0.0.1", "127.0.0.1:1", "localhost:8338", "localhost", "[::1]:80"}) {
    EXPECT_TRUE(is_this_machine(host)) << host;
  }
}

TEST(Access, RefusesAnyOrigin) {
  for (const char* origin : {"https://evil.example", "null", "http://127.0.0.1:8338", ""}) {
    const auto refused = access().refuse(request({{"origin", origin}, {"cookie", cookie()}}));
    ASSERT_TRUE(refused) << origin;
    EXPECT_EQ(refused->status, 403);
  }
}

TEST(Access, RefusesTokensThatAreWeakOrStrange) {
  EXPECT_TRUE(check_token(kToken).ok());
  EXPECT_THAT(check_token("short").error().message, HasSubstr("16 to 256 characters"));
  EXPECT_FALSE(check_token(std::string(257, 'a')).ok());
  EXPECT_FALSE(check_token("0123456789abcdef; Path=/").ok());
  EXPECT_FALSE(check_token("0123456789abcdef\r\nX: y").ok());
}

TEST(Access, EveryAnswerLoadsFromHereAloneAndIsFramedByNobody) {
  HttpAnswer answer;
  add_safety_headers(answer);
  const std::string policy = header_of(answer, "Content-Security-Policy");
  for (const char* part : {"default-src 'none'", "script-src 'self'", "connect-src 'self'",
                           "frame-ancestors 'none'", "base-uri 'none'"}) {
    EXPECT_THAT(policy, HasSubstr(part));
  }
  EXPECT_THAT(policy, testing::Not(HasSubstr("unsafe")));
  EXPECT_EQ(header_of(answer, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(header_of(answer, "Referrer-Policy"), "no-referrer");
  EXPECT_EQ(header_of(answer, "Cache-Control"), "no-store");
}

}  // namespace
}  // namespace fettle::cli
