#include "cli/serve/access.h"

#include <algorithm>
#include <utility>

namespace fettle::cli {
namespace {

constexpr std::size_t kLeastToken = 16;
constexpr std::size_t kMostToken = 256;

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_';
}

bool are_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Takes the same time wherever the texts differ.
bool is_same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

HttpAnswer forbidden(const char* why) {
  return {.status = 403, .body = std::string("fettle serve: ") + why + '\n'};
}

// The path, as the place to go next: only characters that names and routes are made of.
std::string next_place(const std::string& path) {
  const bool plain =
      path.starts_with('/') && !path.starts_with("//") &&
      std::ranges::all_of(path, [](char c) { return is_word(c) || c == '/' || c == '.'; });
  return plain ? path : "/";
}

}  // namespace

Access::Access(std::string token, std::string cookie)
    : token_(std::move(token)), cookie_(std::move(cookie)) {}

std::optional<HttpAnswer> Access::refuse(const HttpRequest& request) const {
  if (!is_this_machine(request.header("host"))) {
    return forbidden("this address answers to 127.0.0.1 and localhost only");
  }
  if (request.headers.contains("origin")) return forbidden("no other site may read this one");
  if (const std::string_view token = request.query_value("token"); !token.empty()) {
    if (!is_same(token, token_)) {
      return forbidden(
          "this token is not the one of the server that runs now; the address with "
          "the right one is where it was started");
    }
    // Not a redirect: a browser that came from another site would follow it without the cookie.
    return HttpAnswer{
        .body = "Opening the page ...\n",
        .headers = {{"Set-Cookie", cookie_ + '=' + token_ + "; Path=/; HttpOnly; SameSite=Strict"},
                    {"Refresh", "0; url=" + next_place(request.path)}}};
  }
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view authorization = request.header("authorization");
  const bool bears =
      authorization.starts_with(kBearer) && is_same(authorization.substr(kBearer.size()), token_);
  if (bears || has_cookie(request.header("cookie"))) return std::nullopt;
  return forbidden("open the address that was printed when it started, with its token");
}

bool Access::has_cookie(std::string_view cookies) const {
  while (!cookies.empty()) {
    std::string_view one = cookies.substr(0, cookies.find(';'));
    cookies.remove_prefix(std::min(one.size() + 1, cookies.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    const std::size_t equals = one.find('=');
    if (equals != std::string_view::npos && one.substr(0, equals) == cookie_ &&
        is_same(one.substr(equals + 1), token_)) {
      return true;
    }
  }
  return false;
}

Status check_token(std::string_view token) {
  if (token.size() < kLeastToken || token.size() > kMostToken) {
    return invalid("a token has " + std::to_string(kLeastToken) + " to " +
                   std::to_string(kMostToken) + " characters, and this one has " +
                   std::to_string(token.size()));
  }
  if (!std::ranges::all_of(token, is_word)) {
    return invalid("a token has letters, digits, - and _ only");
  }
  return success();
}

bool is_this_machine(std::string_view host) {
  for (const std::string_view name : {"127.0.0.1", "localhost", "[::1]"}) {
    if (!host.starts_with(name)) continue;
    const std::string_view rest = host.substr(name.size());
    return rest.empty() || (rest.front() == ':' && are_digits(rest.substr(1)));
  }
  return false;
}

void add_safety_headers(HttpAnswer& answer) {
  answer.headers.insert(
      answer.headers.end(),
      {{"Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src "
        "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
       {"X-Content-Type-Options", "nosniff"},
       {"Referrer-Policy", "no-referrer"},
       {"Cross-Origin-Opener-Policy", "same-origin"},
       {"Cross-Origin-Resource-Policy", "same-origin"}});
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(answer.headers, [&](const auto& one) { return one.first == name; });
  };
  if (!has("Cache-Control")) answer.headers.emplace_back("Cache-Control", "no-store");
}

}  // namespace fettle::cli
