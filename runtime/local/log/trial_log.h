// TrialLog: the output of a run, on disk and bounded.
//
// The first kHeadBytes go to the file as they come. Later output goes to pieces of kTailBytes, each
// a file beside it named by its number. The newest two are kept, so a reader sees the newest lines
// at any time (trial_log_reader.h), also after a crash. finish() makes one file of them: the head,
// a note of how much is missing, the last kTailBytes. A disk that is full costs log lines, never
// the run: the first error is remembered and the rest is dropped. Logs stop while there is still
// room for results. Holds one descriptor, follows no links. Also keeps the last lines
// for messages. Owned by one run; not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fettle::local {

class TrialLog {
 public:
  static constexpr std::int64_t kHeadBytes = 15 << 20;
  static constexpr std::size_t kTailBytes = 1 << 20;
  static constexpr std::size_t kLastBytes = 2048;

  // Never fails: a log that could not be opened has an error() and drops everything.
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
  void open(const std::string& path, int flags);
  void close();
  void write(std::string_view bytes);
  void write_tail(std::string_view bytes);
  Result<std::string> newest_tail() const;

  const std::string path_;
  int fd_ = -1;  // the head, or the newest piece
  std::int64_t bytes_ = 0;
  std::int64_t unasked_ = 0;    // written since the disk was last asked for its room
  std::int64_t tail_seen_ = 0;  // bytes that came after the head was full
  std::string last_;
  std::string error_;
};

// The file of a piece of the tail of the log at `path`: the bytes from kHeadBytes + number *
// kTailBytes on.
std::string tail_piece(const std::string& path, std::int64_t number);

// The numbers of the existing pieces, ascending.
std::vector<std::int64_t> tail_pieces(const std::string& path);

// The note in place of missing bytes: `missing` of `all`, or of an unknown number (0).
std::string left_out_note(std::int64_t missing, std::int64_t all);

// `text` with everything that is not printable UTF-8 replaced by U+FFFD; tabs become spaces.
std::string printable(std::string_view text);

}  // namespace fettle::local
