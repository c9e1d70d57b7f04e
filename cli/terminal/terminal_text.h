// TerminalText: filters a trial's output for a terminal.
//
// Text, line breaks, tabs, carriage returns, backspaces and colours (SGR, ECMA-48 8.3.117) pass.
// All other escape sequences are removed, since they could set the clipboard or the title, or make
// the terminal answer on its input; other control characters, invalid UTF-8 and marks that reorder
// text become '?'. Accepts bytes in any pieces. Pure; not synchronised.
#pragma once

#include <string>
#include <string_view>

namespace fettle::cli {

class TerminalText {
 public:
  // Returns the part of `bytes` that may be written; keeps an unfinished character or sequence.
  std::string feed(std::string_view bytes);
  // Call after the last feed(): switches off colours that are still on.
  std::string finish();

 private:
  enum class State { kText, kEscape, kControl, kCommand, kCommandEscape };

  void take(char c, std::string& out);
  void take_text(char c, std::string& out);
  void take_control(char c, std::string& out);
  void flush(std::string& out);

  State state_ = State::kText;
  std::string character_;   // the bytes so far of a multi-byte character
  std::string parameters_;  // of a control sequence
  bool colored_ = false;
};

}  // namespace fettle::cli
