#include "runtime/kubernetes/log/log_cursor.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "api/fields/timestamp.h"

namespace fettle::kubernetes {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::int64_t kLastStampMs = 9'000'000'000'000;  // in 2255; nanoseconds end soon after
constexpr std::size_t kDateAndTime = 19;                  // "2026-01-31T12:00:00"

// Parses "+02:00" to nanoseconds, "Z" to 0.
std::optional<std::int64_t> parse_zone(std::string_view text) {
  if (text == "Z") return 0;
  const bool formed = text.size() == 6 && (text[0] == '+' || text[0] == '-') && text[3] == ':';
  if (!formed) return std::nullopt;
  int hours = 0;
  int minutes = 0;
  std::from_chars(text.data() + 1, text.data() + 3, hours);
  std::from_chars(text.data() + 4, text.data() + 6, minutes);
  const std::int64_t offset = (hours * 60 + minutes) * 60 * kNsPerSecond;
  return text[0] == '-' ? -offset : offset;
}

// Parses RFC 3339 as container runtimes write it: the node's time zone, up to nine digits.
std::optional<std::int64_t> parse_stamp(std::string_view text) {
  if (text.size() <= kDateAndTime) return std::nullopt;
  const std::string whole = std::string(text.substr(0, kDateAndTime)) + "Z";
  const std::optional<std::int64_t> seconds_ms = api::parse_timestamp(whole);
  if (!seconds_ms || *seconds_ms > kLastStampMs) return std::nullopt;
  std::string_view rest = text.substr(kDateAndTime);
  std::int64_t fraction = 0;
  if (rest.front() == '.') {
    rest.remove_prefix(1);
    std::int64_t digit_ns = kNsPerSecond / 10;
    for (; !rest.empty() && rest[0] >= '0' && rest[0] <= '9'; rest.remove_prefix(1)) {
      fraction += (rest[0] - '0') * digit_ns;
      digit_ns /= 10;  // 0 after nine digits: further digits do not count
    }
  }
  const std::optional<std::int64_t> offset = parse_zone(rest);
  if (!offset) return std::nullopt;
  return *seconds_ms * kNsPerMs + fraction - *offset;
}

}  // namespace

std::optional<StampedLine> split_stamp(std::string_view line) {
  const std::size_t space = line.find(' ');
  const std::optional<std::int64_t> at_ns = parse_stamp(line.substr(0, space));
  if (!at_ns) return std::nullopt;
  return StampedLine{*at_ns, space == line.npos ? "" : line.substr(space + 1)};
}

bool is_log(std::string_view piece) {
  if (piece.empty()) return true;
  while (!piece.empty()) {
    const std::size_t newline = piece.find('\n');
    if (split_stamp(piece.substr(0, newline))) return true;
    piece.remove_prefix(newline == piece.npos ? piece.size() : newline + 1);
  }
  return false;
}

LogCursor::Window LogCursor::next() const {
  Window window;
  window.limit_bytes = limit_bytes_;
  if (last_lines_) {
    window.tail = kLastLogLines;
    window.limit_bytes = kMaxLogBytes;
    return window;
  }
  // The server knows whole seconds only: it starts with the beginning of the newest line's second.
  const std::int64_t since_ms =
      std::max(newest_ns_ / kNsPerSecond * (kNsPerSecond / kNsPerMs), skip_to_ms_);
  if (since_ms != 0) window.since_ms = since_ms;
  return window;
}

bool LogCursor::take(std::string_view piece, bool ended,
                     const std::function<void(std::string_view line)>& on_line) {
  // next() is still the request that this piece answers. A full piece may end within a line.
  const bool full = std::ssize(piece) >= next().limit_bytes;
  const bool any_new = take_lines(piece, ended && !full, on_line);
  if (last_lines_) return true;
  if (!full) {
    limit_bytes_ = std::max(limit_bytes_ / 2, kMinLogBytes);  // the burst is over
    last_lines_ = ended && skip_to_ms_ != 0;
    return !last_lines_;  // the newest lines of a log with skipped lines are read once more
  }
  if (!any_new && limit_bytes_ == kMaxLogBytes) skip_second(piece);
  limit_bytes_ = std::min(limit_bytes_ * 2, kMaxLogBytes);
  return false;
}

// Timestamps are compared with the timestamps of earlier pieces. Within it they need not ascend,
// because stdout and stderr are stamped by different threads of the runtime.
bool LogCursor::take_lines(std::string_view piece, bool last_is_whole,
                           const std::function<void(std::string_view line)>& on_line) {
  const std::int64_t read_to_ns = newest_ns_;
  const std::int64_t read_at_it = at_newest_;
  std::int64_t seen_at_it = 0;
  bool any_new = false;
  while (!piece.empty()) {
    const std::size_t newline = piece.find('\n');
    if (newline == piece.npos && !last_is_whole) break;
    const std::optional<StampedLine> line = split_stamp(piece.substr(0, newline));
    piece.remove_prefix(newline == piece.npos ? piece.size() : newline + 1);
    if (!line || line->at_ns < read_to_ns) continue;
    // The first lines with the latest time of earlier pieces were read before.
    if (line->at_ns == read_to_ns && ++seen_at_it <= read_at_it) continue;
    if (line->at_ns > newest_ns_) {
      newest_ns_ = line->at_ns;
      at_newest_ = 0;
    }
    if (line->at_ns == newest_ns_) ++at_newest_;
    any_new = true;
    on_line(line->text);
  }
  return any_new;
}

// Continues after the second that fills the largest piece with lines that were all read before. If
// none was read yet, it is the second of the piece's first line.
void LogCursor::skip_second(std::string_view piece) {
  const std::optional<StampedLine> first = split_stamp(piece.substr(0, piece.find('\n')));
  const std::int64_t at_ns = std::max(newest_ns_, first ? first->at_ns : 0);
  const std::int64_t second_ms = at_ns / kNsPerSecond * (kNsPerSecond / kNsPerMs);
  skip_to_ms_ = std::max(second_ms, skip_to_ms_) + 1'000;
}

}  // namespace fettle::kubernetes
