#include "kube/transport/http_headers.h"

#include <algorithm>
#include <charconv>

#include "api/fields/timestamp.h"

namespace fettle::kube {
namespace {

constexpr std::chrono::seconds kMaxRetryAfter = std::chrono::hours(24);
// More warnings than this about one request are of no use.
constexpr std::size_t kMaxWarnings = 32;

// Takes the quoted string at the front of `text`, unescaped, off `text`. Absent if its end is
// missing.
std::optional<std::string> take_quoted(std::string_view& text) {
  std::string out;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return out;
    }
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    out += text[i];
  }
  return std::nullopt;
}

}  // namespace

bool is_header_value(std::string_view value) {
  return std::ranges::all_of(value, [](char letter) { return letter >= 0x20 && letter < 0x7F; });
}

std::vector<std::string> read_warnings(std::string_view header) {
  std::vector<std::string> out;
  while (out.size() < kMaxWarnings) {
    // A warning is a code, an agent, a quoted text and perhaps a quoted date.
    const std::size_t start = header.find('"');
    if (start == std::string_view::npos) break;
    header.remove_prefix(start);
    auto text = take_quoted(header);
    if (!text) break;
    out.push_back(std::move(*text));
    const std::size_t next = header.find_first_not_of(' ');
    if (next == std::string_view::npos) break;
    header.remove_prefix(next);
    if (header.front() == '"' && !take_quoted(header)) break;  // skips the date
  }
  return out;
}

std::optional<std::chrono::seconds> read_retry_after(std::string_view header) {
  long long seconds = 0;
  const char* const end = header.data() + header.size();
  const auto [stopped, error] = std::from_chars(header.data(), end, seconds);
  if (stopped != end || header.empty() || seconds < 0) return std::nullopt;
  if (error == std::errc::result_out_of_range) return kMaxRetryAfter;
  if (error != std::errc{}) return std::nullopt;
  return std::min(std::chrono::seconds(seconds), kMaxRetryAfter);
}

std::optional<std::int64_t> read_date(std::string_view header) {
  constexpr std::string_view kForm = "Sun, 06 Nov 1994 08:49:37 GMT";
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (header.size() != kForm.size() || header.substr(3, 2) != ", " || header[7] != ' ' ||
      header[11] != ' ' || header[16] != ' ' || header.substr(25) != " GMT") {
    return std::nullopt;
  }
  const std::size_t at = kMonths.find(header.substr(8, 3));
  // A match that is not at a multiple of 3 spans two names.
  if (at == std::string_view::npos || at % 3 != 0) return std::nullopt;
  const std::string month = std::to_string(101 + at / 3).substr(1);  // two digits
  return api::parse_timestamp(std::string(header.substr(12, 4)) + "-" + month + "-" +
                              std::string(header.substr(5, 2)) + "T" +
                              std::string(header.substr(17, 8)) + "Z");
}

}  // namespace fettle::kube
