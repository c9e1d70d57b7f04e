#include "api/fields/quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

#include "base/json.h"

namespace fettle::api {
namespace {

struct Unit {
  std::string_view suffix;
  double factor;
};

// Largest first, the order in which parts are written.
constexpr std::array<Unit, 5> kDurationUnits{
    {{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}, {"ms", 1e-3}}};
constexpr std::array<Unit, 15> kQuantityUnits{{{"Ei", 0x1p60},
                                               {"Pi", 0x1p50},
                                               {"Ti", 0x1p40},
                                               {"Gi", 0x1p30},
                                               {"Mi", 0x1p20},
                                               {"Ki", 0x1p10},
                                               {"E", 1e18},
                                               {"P", 1e15},
                                               {"T", 1e12},
                                               {"G", 1e9},
                                               {"M", 1e6},
                                               {"k", 1e3},
                                               {"m", 1e-3},
                                               {"u", 1e-6},
                                               {"n", 1e-9}}};
constexpr std::size_t kBinaryUnits = 6;  // the first 6 of kQuantityUnits
constexpr std::size_t kLongestText = 64;

std::optional<double> factor_of(std::span<const Unit> units, std::string_view suffix) {
  for (const Unit& unit : units) {
    if (unit.suffix == suffix) return unit.factor;
  }
  return std::nullopt;
}

// Takes a number off the front of `text`. An E without digits behind it is no exponent: it stays in
// `text`, as the suffix of "1E".
std::optional<double> take_number(std::string_view& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string_view take_letters(std::string_view& text) {
  std::size_t size = 0;
  while (size < text.size() && is_letter(text[size])) ++size;
  const std::string_view letters = text.substr(0, size);
  text.remove_prefix(size);
  return letters;
}

// Multiplies by the suffix's factor without rounding twice: 9 * 1e-3 is not the double nearest to
// 0.009, since 1e-3 is rounded already; 9 / 1e3 is.
double scale(double value, double factor) {
  return factor < 1 ? value / std::round(1 / factor) : value * factor;
}

std::string shown(std::string_view text) { return Json(text.substr(0, kLongestText)).dump(); }

Error no_duration(std::string_view text) {
  return invalid("found " + shown(text) +
                 ", expected a duration such as 90s, 10m, 1h30m, 2d or a number of seconds");
}

Error no_quantity(std::string_view text) {
  return invalid("found " + shown(text) + ", expected a number such as 0.5, 250m, 500M or 20Gi");
}

}  // namespace

Result<double> parse_duration(std::string_view text) {
  std::string_view rest = text;
  double total = 0;
  if (text.empty() || text.size() > kLongestText) return no_duration(text);
  while (!rest.empty()) {
    const bool first = rest.size() == text.size();
    const auto number = take_number(rest);
    if (!number || *number < 0 || std::signbit(*number)) return no_duration(text);  // also -0
    if (first && rest.empty()) return *number;                                      // plain seconds
    const auto factor = factor_of(kDurationUnits, take_letters(rest));
    if (!factor) return no_duration(text);
    total += scale(*number, *factor);
  }
  if (!std::isfinite(total)) return no_duration(text);
  return total;
}

std::string format_duration(double seconds) {
  CHECK(std::isfinite(seconds) && seconds >= 0, "durations are finite and not negative");
  const double longest = 0x1p53;  // beyond it the sums below are not exact
  if (std::trunc(seconds) != seconds || seconds > longest || seconds == 0) {
    return Json(seconds).dump() + "s";
  }
  std::string out;
  for (const Unit& unit : std::span(kDurationUnits).first(4)) {  // whole: no ms
    const double count = std::floor(seconds / unit.factor);
    if (count == 0) continue;
    out += Json(count).dump() + std::string(unit.suffix);
    seconds -= count * unit.factor;
  }
  return out;
}

Result<double> parse_quantity(std::string_view text) {
  if (text.empty() || text.size() > kLongestText) return no_quantity(text);
  // "1E" is 10^18, "1E3" and "1e3" are 1000.
  std::string_view rest = text;
  const auto number = take_number(rest);
  if (!number) return no_quantity(text);
  if (rest.empty()) return *number;
  const auto factor = factor_of(kQuantityUnits, rest);
  if (!factor || !std::isfinite(*number * *factor)) return no_quantity(text);
  return scale(*number, *factor);
}

std::string format_quantity(double value) {
  for (const Unit& unit : std::span(kQuantityUnits).first(kBinaryUnits)) {
    const double count = value / unit.factor;
    if (count != 0 && std::trunc(count) == count && std::fabs(count) < 0x1p53) {
      return Json(count).dump() + std::string(unit.suffix);
    }
  }
  return Json(value).dump();
}

}  // namespace fettle::api
