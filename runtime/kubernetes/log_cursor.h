// LogCursor: how far a container's log has been read, piece by piece.
//
// The API server gives a log from a whole second on and cuts it off after a number of bytes. So
// pieces overlap, and end within a line. What tells lines apart is the time that the runtime put
// in front of each, to the nanosecond: a line is new if its time is later than all that was read
// before, or the same and further down. The last line of a piece counts only with its newline,
// unless the container has ended. Lines without a time are the kubelet's own words, not the log.
//
// A piece that is full is followed by a larger one. If a single second prints more than the largest
// piece holds, the rest of that second is skipped; a log that was skipped in has its newest lines
// read once more at the end, for that is where results are.
//
// Lost: what the kubelet rotated away between two pieces; and if standard output and error write in
// the same microseconds in which a piece is read, maybe a line of one of them.
// Pure; not synchronised.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace fettle::kubernetes {

inline constexpr std::int64_t kLeastLogBytes = 128 << 10;
inline constexpr std::int64_t kMostLogBytes = 4 << 20;
// Read once more at the end of a log that was skipped in.
inline constexpr std::int64_t kLastLogLines = 1'000;

class LogCursor {
 public:
  struct Window {
    std::optional<std::int64_t> since_ms;  // a whole second
    std::optional<std::int64_t> tail;
    std::int64_t limit_bytes = kLeastLogBytes;
  };
  // What to ask for next.
  Window next() const;

  // Takes in the answer to next() and hands on its new lines. `ended`: the container had ended
  // before it was asked for. True if there was no more to read then.
  bool take(std::string_view piece, bool ended,
            const std::function<void(std::string_view line)>& on_line);

 private:
  bool take_lines(std::string_view piece, bool last_counts,
                  const std::function<void(std::string_view line)>& on_line);
  void skip_second(std::string_view piece);

  std::int64_t newest_ns_ = 0;   // the latest time of a line that was read
  std::int64_t at_newest_ = 0;   // lines read of that time
  std::int64_t skip_to_ms_ = 0;  // what is earlier was given up; 0 = nothing
  bool last_lines_ = false;      // the next piece is the end of a log that was skipped in
  std::int64_t limit_bytes_ = kLeastLogBytes;
};

// The time in front of a line, Unix nanoseconds, and the line behind it; absent without a time.
struct StampedLine {
  std::int64_t at_ns = 0;
  std::string_view text;
};
std::optional<StampedLine> split_stamp(std::string_view line);

}  // namespace fettle::kubernetes
