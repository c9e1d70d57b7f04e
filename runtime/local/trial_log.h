// TrialLog: what a run printed, on disk, whatever the amount.
//
// The first kHeadBytes go to the file as they come. Of what follows the last kTailBytes are kept in
// memory and written at the end, with a note of how much is missing between. A disk that is full
// costs log lines, never the run: the first error is remembered and the rest is dropped. Logs stop
// while there is still room for results (disk_room.h).
// Also keeps the last lines for messages. Owned by one run; not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fettle::local {

class TrialLog {
 public:
  static constexpr std::int64_t kHeadBytes = 15 << 20;
  static constexpr std::size_t kTailBytes = 1 << 20;
  static constexpr std::size_t kLastBytes = 2048;

  // Never fails: what could not be opened is an error() and drops everything.
  explicit TrialLog(const std::string& path);
  ~TrialLog();
  TrialLog(const TrialLog&) = delete;
  TrialLog& operator=(const TrialLog&) = delete;

  void append(std::string_view bytes);
  // Writes note and tail. Nothing can be appended afterwards.
  void finish();

  // Everything that was appended, in bytes.
  std::int64_t bytes() const { return bytes_; }
  // The last lines, at most `lines` of them and kLastBytes in all, as printable UTF-8.
  std::string last_lines(int lines) const;
  // "" or why the log is not complete.
  const std::string& error() const { return error_; }

 private:
  void write(std::string_view bytes);

  int fd_ = -1;
  std::int64_t bytes_ = 0;
  std::int64_t unasked_ = 0;    // written since the disk was last asked for its room
  std::int64_t tail_seen_ = 0;  // bytes that came after the head was full
  std::string tail_;            // a ring once it is full; tail_seen_ % kTailBytes is its beginning
  std::string last_;
  std::string error_;
};

// `text` with everything that is not printable UTF-8 replaced by U+FFFD; tabs become spaces.
std::string printable(std::string_view text);

}  // namespace fettle::local
