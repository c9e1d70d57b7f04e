// OutputLines: splits the output of a program into the lines that a terminal would be left with.
//
// A carriage return begins the line again, unless a newline follows it, so a progress bar that is
// redrawn a million times is one short line: its last state. The same holds if the cursor goes up
// (nested bars) or the line is erased. Other escape sequences (colours) and a byte order mark are
// left out. Only the end of a line longer than kMaxLineBytes is kept, and the reader learns that
// its beginning is missing. Takes bytes in any pieces. Pure; not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace fettle::runtime {

inline constexpr std::size_t kMaxLineBytes = 64 << 10;

class OutputLines {
 public:
  // `cut`: the beginning of the line is missing.
  using OnLine = std::function<void(std::string_view line, bool cut)>;

  void feed(std::string_view bytes, const OnLine& on_line);
  // The output has ended: a last line without a newline counts too.
  void finish(const OnLine& on_line);

  std::int64_t bytes() const { return bytes_; }

 private:
  void take(std::string_view piece);
  void append(std::string_view text);
  void restart();
  void emit(std::string_view text, const OnLine& on_line);

  std::string partial_;    // the line so far, at most twice kMaxLineBytes
  std::string shown_;      // storage for a line without its escape sequences
  bool returned_ = false;  // a carriage return came last
  bool cut_ = false;
  std::int64_t bytes_ = 0;
};

// `line` as it is shown: without escape sequences, a byte order mark, and text that was drawn over.
// The result may lie in `room`.
std::string_view shown_text(std::string_view line, std::string& room);

}  // namespace fettle::runtime
