#include "cli/terminal/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/utf8.h"

namespace fettle::cli {
namespace {

constexpr char32_t kReplacement = U'?';
constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
constexpr std::string_view kLevels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 1;
  bool valid = true;
};

// Decodes the code point at the start of `text`, which must not be empty. A broken sequence is one
// invalid byte.
CodePoint decode(std::string_view text) {
  const std::size_t length = utf8_length(text);
  if (length == 0) return {kReplacement, 1, false};
  return {utf8_code_point(text.substr(0, length)), length, true};
}

// Whether terminals draw the code point two columns wide.
bool is_wide(char32_t c) {
  return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
         (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
         (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
}

int width_of(char32_t c) {
  if (c >= 0x300 && c <= 0x36F) return 0;  // combining accents
  return is_wide(c) ? 2 : 1;
}

// Whether it is a C0 or C1 control, or reorders or hides text.
bool is_unprintable(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF ||
         (c >= 0xD800 && c <= 0xDFFF);
}

std::string_view escape_of(Ink ink) {
  switch (ink) {
    case Ink::kPlain:
      return "";
    case Ink::kBold:
      return "\x1b[1m";
    case Ink::kDim:
      return "\x1b[2m";
    case Ink::kGood:
      return "\x1b[32m";
    case Ink::kBad:
      return "\x1b[31m";
    case Ink::kAccent:
      return "\x1b[36m";
  }
  return "";
}

std::string formatted(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

std::string two_units(std::int64_t large, const char* large_unit, std::int64_t small,
                      const char* small_unit) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%lld%s %02lld%s", static_cast<long long>(large), large_unit,
                static_cast<long long>(small), small_unit);
  return buffer;
}

std::string repeated(std::string_view piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const CodePoint point = decode(text);
    width += width_of(point.value);
    text.remove_prefix(point.bytes);
  }
  return width;
}

std::string truncated(std::string_view text, int columns, const Style& style) {
  if (display_width(text) <= columns) return std::string(text);
  const std::string_view ellipsis = style.unicode ? "…" : "~";
  std::string cut;
  int width = 1;  // that of the ellipsis
  while (!text.empty()) {
    const CodePoint point = decode(text);
    width += width_of(point.value);
    if (width > columns) break;
    cut += text.substr(0, point.bytes);
    text.remove_prefix(point.bytes);
  }
  return columns > 0 ? cut + std::string(ellipsis) : "";
}

std::string shortened(std::string_view text, int columns) {
  if (display_width(text) <= columns) return std::string(text);
  const std::string begin = truncated(text, columns / 3, {});
  int left = columns - display_width(begin);
  std::vector<CodePoint> points;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(points.back().bytes)) {
    points.push_back(decode(rest));
  }
  std::size_t bytes = 0;  // kept at the end
  for (auto point = points.rbegin(); point != points.rend(); ++point) {
    left -= width_of(point->value);
    if (left < 0) break;
    bytes += point->bytes;
  }
  return begin + std::string(text.substr(text.size() - bytes));
}

std::string padded(std::string text, int columns, bool right_aligned) {
  const int missing = columns - display_width(text);
  if (missing <= 0) return text;
  const std::string fill(static_cast<std::size_t>(missing), ' ');
  return right_aligned ? fill + text : text + fill;
}

std::string printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = decode(text);
    if (text[0] == '\n' || text[0] == '\t' || text[0] == '\r') {
      clean += ' ';
    } else if (!point.valid || is_unprintable(point.value)) {
      clean += '?';
    } else {
      clean += text.substr(0, point.bytes);
    }
    text.remove_prefix(point.bytes);
  }
  return clean;
}

std::string render_line(const Line& line, int columns, const Style& style) {
  std::string out;
  int left = columns;
  for (const Span& span : line) {
    if (left <= 0) break;
    const std::string text = truncated(span.text, left, style);
    left -= display_width(span.text);
    const std::string_view escape = style.color ? escape_of(span.ink) : "";
    out += escape;
    out += text;
    if (!escape.empty()) out += "\x1b[0m";
  }
  return out;
}

std::string bar(double fraction, int columns, const Style& style) {
  const double clamped = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
  if (!style.unicode) {
    const int filled = static_cast<int>(clamped * columns);
    return repeated("#", filled) + repeated("-", columns - filled);
  }
  const int eighths = static_cast<int>(clamped * columns * 8);
  const std::string_view partial = kEighths[eighths % 8];
  const int used = eighths / 8 + (partial.empty() ? 0 : 1);
  return repeated("█", eighths / 8) + std::string(partial) + repeated("░", columns - used);
}

std::string sparkline(const std::vector<double>& values, int columns, const Style& style) {
  if (!style.unicode || values.empty() || columns <= 0) return "";
  const auto [low, high] = std::ranges::minmax_element(values);
  const double range = *high - *low;
  const std::size_t shown = std::min(values.size(), static_cast<std::size_t>(columns));
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const double value = values[(i + 1) * values.size() / shown - 1];
    const double height = range > 0 ? (value - *low) / range : 0.0;
    text += kLevels[std::min(static_cast<std::size_t>(height * 8), std::size_t{7})];
  }
  return text;
}

std::string render_lines(const std::vector<Line>& lines, int columns, const Style& style) {
  std::string text;
  for (const Line& line : lines) text += render_line(line, columns, style) + '\n';
  return text;
}

std::vector<Line> table(const std::vector<Column>& columns, const std::vector<Line>& rows) {
  std::vector<int> widths;
  widths.reserve(columns.size());
  for (const Column& column : columns) widths.push_back(display_width(column.title));
  for (const Line& row : rows) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i].text));
    }
  }
  std::vector<Line> lines;
  const auto add = [&](const Line& cells) {
    Line line;
    for (std::size_t i = 0; i < cells.size() && i < widths.size(); ++i) {
      const bool last_on_the_left = i + 1 == widths.size() && !columns[i].right_aligned;
      if (i + 1 == widths.size() && cells[i].text.empty()) continue;  // no trailing spaces
      line.push_back({"  "});
      line.push_back(
          {padded(cells[i].text, last_on_the_left ? 0 : widths[i], columns[i].right_aligned),
           cells[i].ink});
    }
    lines.push_back(std::move(line));
  };
  Line header;
  for (const Column& column : columns) header.push_back({column.title, Ink::kDim});
  add(header);
  for (const Line& row : rows) add(row);
  return lines;
}

std::string format_elapsed(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  // Limits lie where rounding would carry: no "1000 ms", no "10.0 s".
  if (seconds < 0.9995) return formatted("%.0f ms", seconds * 1000);
  if (seconds < 9.95) return formatted("%.1f s", seconds);
  const std::int64_t whole = std::llround(seconds);
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) return two_units(whole / 60, "m", whole % 60, "s");
  if (whole < 86400) return two_units(whole / 3600, "h", whole % 3600 / 60, "m");
  return two_units(whole / 86400, "d", whole % 86400 / 3600, "h");
}

std::string format_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "infinity" : "-infinity";
  if (std::abs(value) < 1e15 && std::abs(value) >= 1000 && value == std::floor(value)) {
    return formatted("%.0f", value);
  }
  return formatted("%.4g", value);
}

std::string format_count(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string format_value(const Json& value) {
  if (value.is_string()) return printable(value.as_string());
  if (value.is_integer()) return std::to_string(value.as_integer());
  if (value.is_number()) return format_number(value.as_double());
  return printable(value.dump());
}

std::string format_parameters(const Json& parameters) {
  std::string text;
  if (!parameters.is_object()) return text;
  for (const auto& [name, value] : parameters.as_object()) {
    if (!text.empty()) text += ' ';
    text += printable(name) + '=' + format_value(value);
  }
  return text;
}

std::string shell_word(const std::string& word) {
  const bool plain =
      !word.empty() &&
      word.find_first_not_of(
          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./=:,@+") ==
          std::string::npos;
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::string plural(std::int64_t count, std::string_view noun) {
  return format_count(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace fettle::cli
