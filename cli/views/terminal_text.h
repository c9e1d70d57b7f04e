// TerminalText: a trial's output as a terminal may be given it.
//
// Text, line breaks, tabs, carriage returns, backspaces and colours (SGR, ECMA-48 8.3.117) pass.
// All other escape sequences are left out, which could set the clipboard or the title, or make the
// terminal answer on its input; other control characters, bytes that are not UTF-8 and marks that
// reorder text become '?'. Takes bytes in any pieces. Pure; not synchronised.
#pragma once

#include <string>
#include <string_view>

namespace fettle::cli {

class TerminalText {
 public:
  // What may be written of `bytes`; the rest of an unfinished character or sequence is kept.
  std::string feed(std::string_view bytes);
  // After the last feed(): switches colours off that are still on.
  std::string finish();

 private:
  enum class State { kText, kEscape, kControl, kCommand, kCommandEscape };

  void take(char c, std::string& out);
  void take_text(char c, std::string& out);
  void take_control(char c, std::string& out);
  void flush(std::string& out);

  State state_ = State::kText;
  std::string character_;   // the bytes so far of one that has several
  std::string parameters_;  // of a control sequence
  bool colored_ = false;
};

}  // namespace fettle::cli
