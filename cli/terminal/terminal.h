// The terminal at stdout, if any: its size, its abilities, and a frame redrawn in place.
//
// LiveScreen changes no terminal setting: no alternate screen, no hidden cursor, no raw mode. Every
// frame is one write that moves up to the beginning of the last one and overwrites it. So there is
// nothing to restore, however the program ends. Not synchronised.
#pragma once

#include <string>

#include "cli/terminal/text.h"

namespace fettle::cli {

struct TerminalSize {
  int columns = 80;
  int rows = 24;
  bool operator==(const TerminalSize&) const = default;
};

// Whether stdout is a terminal on which a frame can be redrawn in place.
bool stdout_is_live();
TerminalSize size_of_stdout();
// Returns the width to which lines are cut: the terminal's, or no limit for a file or pipe.
int columns_of_stdout();
// Uses colours on a terminal unless NO_COLOR is set (no-color.org), and block characters unless the
// locale cannot show them.
Style style_of_stdout();

class LiveScreen {
 public:
  // Returns the largest frame: one row is left for the cursor, one column for terminals that wrap
  // early.
  TerminalSize room() const;
  // Replaces the frame on the screen. `frame`: lines, each ended by a line break, within room().
  void draw(const std::string& frame);
  // Removes the frame from the screen; the next output begins in its place.
  void erase();

 private:
  std::string back_to_start();

  TerminalSize drawn_for_;
  int rows_drawn_ = 0;
};

// Writes all of `text` to stdout, whatever the buffers. Errors are ignored: a closed stdout must
// not end a study.
void write_stdout(const std::string& text);

}  // namespace fettle::cli
