// LogCursor: the position up to which a container's log was read, piece by piece.
//
// The API server starts a log at a whole second (sinceTime) and truncates it after a number of
// bytes. So pieces overlap and may end within a line. Lines are identified by the timestamp, in
// nanoseconds, that the container runtime puts in front of each: a line is new if its timestamp is
// later than every one read before, or equal to the latest and further down. The last line of a
// piece counts only with its newline, unless the container has ended. Lines without a timestamp
// are messages of the kubelet, not of the program.
//
// After a full piece the next one is larger. If one second prints more than the largest piece
// holds, the rest of that second is skipped. A log with skipped lines has its newest lines read
// once more at the end, because that is where results are.
//
// Two kinds of lines can be lost: lines that the kubelet rotated away between two pieces, and, if
// stdout and stderr write in the same microseconds in which a piece is read, a line of one of them.
// Pure; not synchronised.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace fettle::kubernetes {

inline constexpr std::int64_t kMinLogBytes = 128 << 10;
inline constexpr std::int64_t kMaxLogBytes = 4 << 20;
// Read once more at the end of a log that was skipped in.
inline constexpr std::int64_t kLastLogLines = 1'000;

class LogCursor {
 public:
  struct Window {
    std::optional<std::int64_t> since_ms;  // a whole second
    std::optional<std::int64_t> tail;
    std::int64_t limit_bytes = kMinLogBytes;
  };
  // The next request.
  Window next() const;

  // Consumes the answer to next() and passes on its new lines. `ended`: the container had ended
  // before the request. True if the log was read to its end.
  bool take(std::string_view piece, bool ended,
            const std::function<void(std::string_view line)>& on_line);

 private:
  // True if any line was new.
  bool take_lines(std::string_view piece, bool last_is_whole,
                  const std::function<void(std::string_view line)>& on_line);
  void skip_second(std::string_view piece);

  std::int64_t newest_ns_ = 0;   // the latest time of a line that was read
  std::int64_t at_newest_ = 0;   // lines read of that time
  std::int64_t skip_to_ms_ = 0;  // earlier lines are skipped; 0 = none
  bool last_lines_ = false;      // the next piece is the tail of a log with skipped lines
  std::int64_t limit_bytes_ = kMinLogBytes;
};

// Whether the answer to a request for a log is a log: empty, or with a line that has a timestamp.
// Otherwise the kubelet or a proxy before it has answered with words of its own.
bool is_log(std::string_view piece);

// Splits a line into its timestamp, Unix nanoseconds, and the rest; absent without a timestamp.
struct StampedLine {
  std::int64_t at_ns = 0;
  std::string_view text;
};
std::optional<StampedLine> split_stamp(std::string_view line);

}  // namespace fettle::kubernetes
