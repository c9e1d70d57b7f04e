#include "base/json.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace fettle {
namespace {

// 2^63 as a double: the smallest that does not fit std::int64_t.
constexpr double kInt64Limit = 9223372036854775808.0;

void dump_string(const std::string& text, std::string& out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (byte < 0x20) {
          out += "\\u00";
          out += kHex[byte >> 4];
          out += kHex[byte & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

template <class Number>
void dump_number(Number value, std::string& out) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  out.append(buffer.data(), end);
}

void new_line(int indent, int depth, std::string& out) {
  if (indent == 0) return;
  out += '\n';
  out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth), ' ');
}

void dump_value(const Json& value, int indent, int depth, std::string& out);

// Writes the brackets, commas and line breaks of an array or an object; `dump_item` writes an
// element.
template <class Items, class DumpItem>
void dump_items(const Items& items, char open, char close, int indent, int depth, std::string& out,
                DumpItem dump_item) {
  out += open;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    new_line(indent, depth + 1, out);
    dump_item(item);
  }
  if (!items.empty()) new_line(indent, depth, out);
  out += close;
}

void dump_value(const Json& value, int indent, int depth, std::string& out) {
  switch (value.type()) {
    case Json::Type::kNull:
      out += "null";
      return;
    case Json::Type::kBoolean:
      out += value.as_boolean() ? "true" : "false";
      return;
    case Json::Type::kString:
      dump_string(value.as_string(), out);
      return;
    case Json::Type::kNumber:
      if (value.is_integer()) {
        dump_number(value.as_integer(), out);
      } else if (std::isfinite(value.as_double())) {
        dump_number(value.as_double(), out);
      } else {
        out += "null";  // JSON has no NaN and no infinity
      }
      return;
    case Json::Type::kArray:
      dump_items(value.as_array(), '[', ']', indent, depth, out,
                 [&](const Json& item) { dump_value(item, indent, depth + 1, out); });
      return;
    case Json::Type::kObject:
      dump_items(value.as_object(), '{', '}', indent, depth, out, [&](const Json::Member& member) {
        dump_string(member.first, out);
        out += indent == 0 ? ":" : ": ";
        dump_value(member.second, indent, depth + 1, out);
      });
      return;
  }
}

// Appends the code point `code`: at most 0x10FFFF and not a surrogate.
void append_utf8(std::uint32_t code, std::string& out) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

// Recursive descent; each parse_* either consumes its part or sets error_ once and returns false.
class Parser {
 public:
  Parser(std::string_view text, const JsonParseOptions& options) : text_(text), options_(options) {}

  Result<Json> parse() {
    Json value;
    skip_space();
    if (!parse_value(value, 0)) return located_error();
    skip_space();
    if (at_ != text_.size()) {
      fail("expected the end of the text");
      return located_error();
    }
    return value;
  }

 private:
  bool fail(std::string what) {
    if (error_.empty()) error_ = std::move(what);
    return false;
  }

  // Returns error_ with the line and column (from 1, in bytes) of at_.
  Error located_error() const {
    std::size_t line = 1;
    std::size_t line_start = 0;
    for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) {
      if (text_[i] != '\n') continue;
      ++line;
      line_start = i + 1;
    }
    return invalid("line " + std::to_string(line) + ", column " +
                   std::to_string(at_ - line_start + 1) + ": " + error_);
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool parse_value(Json& out, int depth) {
    if (depth > options_.max_depth) {
      return fail("nested deeper than " + std::to_string(options_.max_depth) + " levels");
    }
    switch (peek()) {
      case '{':
        return parse_object(out, depth);
      case '[':
        return parse_array(out, depth);
      case '"': {
        std::string text;
        if (!parse_string(text)) return false;
        out = Json(std::move(text));
        return true;
      }
      default:
        return parse_literal(out);
    }
  }

  bool parse_literal(Json& out) {
    if (take_word("true")) return out = Json(true), true;
    if (take_word("false")) return out = Json(false), true;
    if (take_word("null")) return out = Json(), true;
    if (options_.allow_non_finite && take_non_finite(out)) return true;
    return parse_number(out);
  }

  // Takes a non-finite value written in letters. It must stand alone: "info" is not one.
  bool take_non_finite(Json& out) {
    double value = 0;
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    // from_chars takes a minus, but no plus.
    const char* const unsigned_begin = begin + (peek() == '+' ? 1 : 0);
    const auto [stopped, code] = std::from_chars(unsigned_begin, end, value);
    if (code != std::errc{} || std::isfinite(value)) return false;  // for parse_number()
    const auto continues = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    if (stopped != end && continues(*stopped)) return false;
    at_ += static_cast<std::size_t>(stopped - begin);
    out = Json(value);
    return true;
  }

  bool parse_digits() {
    const std::size_t start = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ > start;
  }

  bool parse_number(Json& out) {
    const std::size_t start = at_;
    bool integral = true;
    take('-');  // optional
    const std::size_t first_digit = at_;
    if (!parse_digits()) {
      at_ = start;
      return fail("expected a JSON value");
    }
    if (text_[first_digit] == '0' && at_ > first_digit + 1) {
      at_ = start;
      return fail("a number may not start with 0");
    }
    if (take('.')) {
      integral = false;
      if (!parse_digits()) return fail("expected a digit after the decimal point");
    }
    if (peek() == 'e' || peek() == 'E') {
      integral = false;
      ++at_;
      if (!take('+')) take('-');
      if (!parse_digits()) return fail("expected a digit in the exponent");
    }
    return convert_number(text_.substr(start, at_ - start), integral, out);
  }

  bool convert_number(std::string_view digits, bool integral, Json& out) {
    const char* const end = digits.data() + digits.size();
    // An integer beyond std::int64_t becomes a double.
    if (std::int64_t integer = 0;
        integral && std::from_chars(digits.data(), end, integer).ec == std::errc{}) {
      out = Json(integer);
      return true;
    }
    double number = 0;
    if (std::from_chars(digits.data(), end, number).ec != std::errc{}) {
      // from_chars also refuses numbers too small for a double; they become zero.
      const std::string copy(digits);
      number = std::strtod(copy.c_str(), nullptr);
      if (!std::isfinite(number) && !options_.allow_non_finite) {
        at_ -= digits.size();
        return fail("the number " + copy + " is outside the range of a double");
      }
    }
    out = Json(number);
    return true;
  }

  bool parse_hex4(std::uint32_t& code) {
    const std::string_view digits = text_.substr(at_, 4);
    const auto [ptr, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() != 4 || ec != std::errc{} || ptr != digits.data() + 4) {
      return fail("expected four hexadecimal digits after \\u");
    }
    at_ += 4;
    return true;
  }

  // Parses the part after \u. A code point above U+FFFF takes two escapes, a surrogate pair.
  bool parse_unicode_escape(std::string& out) {
    std::uint32_t code = 0;
    if (!parse_hex4(code)) return false;
    if (code >= 0xD800 && code < 0xDC00) {
      std::uint32_t low = 0;
      if (!take('\\') || !take('u') || !parse_hex4(low) || low < 0xDC00 || low > 0xDFFF) {
        return fail("half of a surrogate pair");
      }
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      return fail("half of a surrogate pair");
    }
    append_utf8(code, out);
    return true;
  }

  bool parse_escape(std::string& out) {
    const char c = peek();
    ++at_;
    switch (c) {
      case '"':
        out += '"';
        return true;
      case '\\':
        out += '\\';
        return true;
      case '/':
        out += '/';
        return true;
      case 'b':
        out += '\b';
        return true;
      case 'f':
        out += '\f';
        return true;
      case 'n':
        out += '\n';
        return true;
      case 'r':
        out += '\r';
        return true;
      case 't':
        out += '\t';
        return true;
      case 'u':
        return parse_unicode_escape(out);
      default:
        --at_;  // the error is at this character
        return fail("unknown escape in a string");
    }
  }

  // Bytes above 0x7F are copied unchanged; the caller checks that they are UTF-8.
  bool parse_string(std::string& out) {
    take('"');  // the caller has seen it
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') return ++at_, true;
      if (static_cast<unsigned char>(c) < 0x20) return fail("control character in a string");
      ++at_;
      if (c != '\\') {
        out += c;
      } else if (!parse_escape(out)) {
        return false;
      }
    }
    return fail("string without an end");
  }

  bool parse_array(Json& out, int depth) {
    take('[');
    out = Json::array();
    skip_space();
    if (take(']')) return true;
    for (;;) {
      Json item;
      skip_space();
      if (!parse_value(item, depth + 1)) return false;
      out.push_back(std::move(item));
      skip_space();
      if (take(']')) return true;
      if (!take(',')) return fail("expected ',' or ']'");
    }
  }

  bool parse_object(Json& out, int depth) {
    take('{');
    out = Json::object();
    skip_space();
    if (take('}')) return true;
    for (;;) {
      skip_space();
      if (peek() != '"') return fail("expected a member name in quotes");
      std::string key;
      const std::size_t last_key_at = at_;  // check_unique() puts its error there
      if (!parse_string(key)) return false;
      skip_space();
      if (!take(':')) return fail("expected ':'");
      Json value;
      skip_space();
      if (!parse_value(value, depth + 1)) return false;
      // Appended without a look-up and checked once at the end, so that large objects stay linear.
      out.as_object().emplace_back(std::move(key), std::move(value));
      skip_space();
      if (take('}')) return check_unique(out.as_object(), last_key_at);
      if (!take(',')) return fail("expected ',' or '}'");
    }
  }

  // The error is located at the last member's name, because other places are not kept.
  bool check_unique(const Json::Object& members, std::size_t last_key_at) {
    std::vector<std::string_view> keys;
    keys.reserve(members.size());
    for (const auto& [key, value] : members) keys.push_back(key);
    std::ranges::sort(keys);
    const auto twice = std::ranges::adjacent_find(keys);
    if (twice == keys.end()) return true;
    at_ = last_key_at;
    return fail("the member '" + std::string(*twice) + "' comes twice in one object");
  }

  std::string_view text_;
  const JsonParseOptions& options_;
  std::size_t at_ = 0;
  std::string error_;
};

bool equal_objects(const Json::Object& a, const Json& b) {
  if (a.size() != b.as_object().size()) return false;
  return std::ranges::all_of(a, [&](const Json::Member& member) {
    const Json* other = b.find(member.first);
    return other != nullptr && *other == member.second;
  });
}

}  // namespace

Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json::Json(const char* value) : value_(std::string(value)) {}
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(std::string_view value) : value_(std::string(value)) {}
Json::Json(Array value) : value_(std::move(value)) {}

Json Json::array() { return Json(Array{}); }
Json Json::object() { return object({}); }

Json::Json(std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    value_ = static_cast<std::int64_t>(value);
  } else {
    value_ = static_cast<double>(value);
  }
}

Json Json::object(std::initializer_list<Member> members) {
  Json out;
  out.value_ = Members{};
  for (const Member& member : members) out.set(member.first, member.second);
  return out;
}

Json::Type Json::type() const {
  static constexpr std::array kTypes = {Type::kNull,   Type::kBoolean, Type::kNumber, Type::kNumber,
                                        Type::kString, Type::kArray,   Type::kObject};
  return kTypes[value_.index()];
}

std::string_view Json::type_name() const {
  static constexpr std::array<std::string_view, 6> kNames = {"null",   "boolean", "number",
                                                             "string", "array",   "object"};
  return kNames[static_cast<std::size_t>(type())];
}

bool Json::is_integer() const {
  if (std::holds_alternative<std::int64_t>(value_)) return true;
  const double* number = std::get_if<double>(&value_);
  return number != nullptr && *number >= -kInt64Limit && *number < kInt64Limit &&
         std::trunc(*number) == *number;
}

bool Json::as_boolean() const {
  CHECK(is_boolean(), "as_boolean() of another type");
  return std::get<bool>(value_);
}

double Json::as_double() const {
  CHECK(is_number(), "as_double() of another type");
  if (const auto* integer = std::get_if<std::int64_t>(&value_)) {
    return static_cast<double>(*integer);
  }
  return std::get<double>(value_);
}

std::int64_t Json::as_integer() const {
  CHECK(is_integer(), "as_integer() of something that is not an integer");
  if (const auto* integer = std::get_if<std::int64_t>(&value_)) return *integer;
  return static_cast<std::int64_t>(std::get<double>(value_));
}

const std::string& Json::as_string() const {
  CHECK(is_string(), "as_string() of another type");
  return std::get<std::string>(value_);
}

const Json::Array& Json::as_array() const {
  CHECK(is_array(), "as_array() of another type");
  return std::get<Array>(value_);
}

Json::Array& Json::as_array() {
  CHECK(is_array(), "as_array() of another type");
  return std::get<Array>(value_);
}

const Json::Object& Json::as_object() const {
  CHECK(is_object(), "as_object() of another type");
  return std::get<Members>(value_).list;
}

Json::Object& Json::as_object() {
  CHECK(is_object(), "as_object() of another type");
  return std::get<Members>(value_).list;
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const auto& [name, value] : as_object()) {
    if (name == key) return &value;
  }
  return nullptr;
}

Json* Json::find(std::string_view key) {
  return const_cast<Json*>(static_cast<const Json*>(this)->find(key));
}

Json& Json::set(std::string_view key, Json value) {
  if (is_null()) *this = object();
  if (Json* existing = find(key)) {
    *existing = std::move(value);
  } else {
    as_object().emplace_back(std::string(key), std::move(value));
  }
  return *this;
}

void Json::erase(std::string_view key) {
  if (!is_object()) return;
  std::erase_if(as_object(), [&](const Member& member) { return member.first == key; });
}

void Json::push_back(Json value) {
  if (is_null()) *this = array();
  as_array().push_back(std::move(value));
}

std::string Json::dump(int indent) const {
  std::string out;
  dump_value(*this, indent, 0, out);
  return out;
}

bool operator==(const Json& a, const Json& b) {
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Json::Type::kNull:
      return true;
    case Json::Type::kBoolean:
      return a.as_boolean() == b.as_boolean();
    case Json::Type::kNumber:
      // 1 equals 1.0; large integers are compared exactly.
      return a.is_integer() && b.is_integer() ? a.as_integer() == b.as_integer()
                                              : a.as_double() == b.as_double();
    case Json::Type::kString:
      return a.as_string() == b.as_string();
    case Json::Type::kArray:
      return a.as_array() == b.as_array();
    case Json::Type::kObject:
      return equal_objects(a.as_object(), b);
  }
  return false;
}

Result<Json> parse_json(std::string_view text, const JsonParseOptions& options) {
  return Parser(text, options).parse();
}

}  // namespace fettle
