#include "api/fields/timestamp.h"

#include <chrono>
#include <cstdio>

namespace fettle::api {
namespace {

// Reads exactly `count` digits at `at` and moves `at` past them; -1 if there are fewer.
int take_digits(std::string_view text, std::size_t& at, std::size_t count) {
  if (at + count > text.size()) return -1;
  int value = 0;
  for (const std::size_t end = at + count; at < end; ++at) {
    if (text[at] < '0' || text[at] > '9') return -1;
    value = value * 10 + (text[at] - '0');
  }
  return value;
}

bool take_char(std::string_view text, std::size_t& at, char c) {
  if (at >= text.size() || text[at] != c) return false;
  ++at;
  return true;
}

// ".25" -> 250; no fraction -> 0; -1 for a dot without digits. Drops digits after the third.
int take_milliseconds(std::string_view text, std::size_t& at) {
  if (!take_char(text, at, '.')) return 0;
  int value = 0;
  std::size_t digits = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, ++digits) {
    if (digits < 3) value = value * 10 + (text[at] - '0');
  }
  for (std::size_t i = digits; i < 3; ++i) value *= 10;
  return digits == 0 ? -1 : value;
}

}  // namespace

std::string format_timestamp(std::int64_t unix_ms) {
  using namespace std::chrono;
  const sys_time<milliseconds> time{milliseconds(unix_ms)};
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss<milliseconds> clock{time - day};
  char buffer[64];
  int size = std::snprintf(
      buffer, sizeof buffer, "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()));
  std::string out(buffer, static_cast<std::size_t>(size));
  if (const auto fraction = static_cast<int>(clock.subseconds().count()); fraction != 0) {
    size = std::snprintf(buffer, sizeof buffer, ".%03d", fraction);
    out.append(buffer, static_cast<std::size_t>(size));
  }
  return out + 'Z';
}

std::optional<std::int64_t> parse_timestamp(std::string_view text) {
  using namespace std::chrono;
  // A part that is missing is -1 or false; the checks below find it.
  std::size_t at = 0;
  const int y = take_digits(text, at, 4);
  const bool dash1 = take_char(text, at, '-');
  const int m = take_digits(text, at, 2);
  const bool dash2 = take_char(text, at, '-');
  const int d = take_digits(text, at, 2);
  const bool t = take_char(text, at, 'T');
  const int hour = take_digits(text, at, 2);
  const bool colon1 = take_char(text, at, ':');
  const int minute = take_digits(text, at, 2);
  const bool colon2 = take_char(text, at, ':');
  const int second = take_digits(text, at, 2);
  const int fraction = take_milliseconds(text, at);
  const bool zulu = take_char(text, at, 'Z') && at == text.size();
  if (!(dash1 && dash2 && t && colon1 && colon2 && zulu) || y < 0 || m < 0 || d < 0) {
    return std::nullopt;
  }
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 ||
      fraction < 0) {
    return std::nullopt;
  }
  const year_month_day date{year(y), month(static_cast<unsigned>(m)),
                            day(static_cast<unsigned>(d))};
  if (!date.ok()) return std::nullopt;
  const auto time = sys_days(date) + hours(hour) + minutes(minute) + seconds(second);
  return duration_cast<milliseconds>(time.time_since_epoch()).count() + fraction;
}

}  // namespace fettle::api
