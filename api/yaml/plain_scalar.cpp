// The type of a plain YAML scalar for kubectl: the rules of go-yaml v2's resolve().
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "api/yaml/yaml_reader.h"

namespace fettle::api {
namespace {

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

std::optional<Json> resolve_word(std::string_view text) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return Json();
  if (is_one_of(text, {"true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"})) {
    return Json(true);
  }
  if (is_one_of(text,
                {"false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"})) {
    return Json(false);
  }
  if (is_one_of(text, {".nan", ".NaN", ".NAN"})) {
    return Json(std::numeric_limits<double>::quiet_NaN());
  }
  if (is_one_of(text, {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"})) return Json(infinity);
  if (is_one_of(text, {"-.inf", "-.Inf", "-.INF"})) return Json(-infinity);
  return std::nullopt;
}

// Reads decimal, 0x, 0o, 0b, and octal with a leading zero; within int64, except -2^63, which a
// double holds as well.
std::optional<std::int64_t> parse_integer(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text.front() == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);  // in lower case
    base = letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
    text.remove_prefix(letter == 'x' || letter == 'b' || letter == 'o' ? 2 : 1);
  }
  std::uint64_t magnitude = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, magnitude, base);
  if (text.empty() || error != std::errc{} || stopped != end) return std::nullopt;
  const auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (magnitude > largest) return std::nullopt;
  return negative ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool looks_like_float(std::string_view text) {
  std::size_t at = 0;
  const auto sign = [&] { at += at < text.size() && (text[at] == '-' || text[at] == '+'); };
  const auto digits = [&] {
    const std::size_t start = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at > start;
  };
  sign();
  const bool leading = digits();
  const bool dot = at < text.size() && text[at] == '.';
  if (dot) ++at;
  const bool trailing = dot && digits();
  if (!leading && !trailing) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    sign();
    if (!digits()) return false;
  }
  return at == text.size();
}

}  // namespace

Result<Json> resolve_plain_scalar(std::string_view text) {
  if (auto word = resolve_word(text)) return *word;
  constexpr std::string_view kNumberStarts = "+-.0123456789";
  // A front exists: an empty text is a word, null.
  if (kNumberStarts.find(text.front()) == std::string_view::npos) return Json(text);
  std::string plain(text);
  std::erase(plain, '_');  // as go-yaml does: 1_000
  if (const auto integer = parse_integer(plain)) return Json(*integer);
  if (!looks_like_float(plain)) return Json(text);
  const double number = std::strtod(plain.c_str(), nullptr);
  if (!std::isfinite(number)) {
    return invalid("the number " + plain.substr(0, 40) +
                   " is outside the range of a double, which ends at 1.8e308");
  }
  return Json(number);
}

bool is_surprising(std::string_view text, const Json& value) {
  // true and false, in any spelling, are no surprise.
  if (value.is_boolean()) return (text.front() | 0x20) != 't' && (text.front() | 0x20) != 'f';
  if (!value.is_integer()) return false;
  const std::size_t digit = text.find_first_not_of("+-");
  // 010 and 0x10, but not 0.0, which is an integer, too.
  const bool prefixed =
      digit != text.npos && text[digit] == '0' && digit + 1 < text.size() && text[digit + 1] != '.';
  return prefixed || text.find('_') != text.npos;
}

}  // namespace fettle::api
