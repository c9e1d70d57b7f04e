#include "cli/terminal/terminal_text.h"

#include <algorithm>

#include "base/utf8.h"
#include "cli/terminal/text.h"

namespace fettle::cli {
namespace {

constexpr std::size_t kMaxParameters = 64;
constexpr char kEscape = '\x1b';

bool is_between(char c, char low, char high) { return c >= low && c <= high; }

// Returns the bytes of the character that begins with `c`; 1 if none does.
std::size_t expected_bytes(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0xF0) return 4;
  if (byte >= 0xE0) return 3;
  return byte >= 0xC0 ? 2 : 1;
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

}  // namespace

std::string TerminalText::feed(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) take(c, out);
  return out;
}

std::string TerminalText::finish() {
  std::string out;
  flush(out);
  state_ = State::kText;
  if (colored_) out += "\x1b[0m";
  colored_ = false;
  return out;
}

void TerminalText::take(char c, std::string& out) {
  // A line break ends every sequence, so an unfinished one hides at most its line.
  if (c == '\n') state_ = State::kText;
  switch (state_) {
    case State::kText:
      return take_text(c, out);
    case State::kEscape:
      parameters_.clear();
      state_ = State::kText;
      if (c == '[') state_ = State::kControl;
      if (std::string_view("]PX^_").find(c) != std::string_view::npos) state_ = State::kCommand;
      if (c == kEscape) state_ = State::kEscape;
      return;
    case State::kControl:
      return take_control(c, out);
    case State::kCommand:
      if (c == '\a') state_ = State::kText;
      if (c == kEscape) state_ = State::kCommandEscape;
      return;
    case State::kCommandEscape:
      state_ = c == '\\' ? State::kText : State::kCommand;
      return;
  }
}

void TerminalText::take_text(char c, std::string& out) {
  if (!character_.empty() && is_continuation(c)) {
    character_ += c;
    if (character_.size() == expected_bytes(character_.front())) flush(out);
    return;
  }
  flush(out);
  if (c == kEscape) {
    state_ = State::kEscape;
  } else if (!is_ascii(c)) {
    character_ = c;
    if (expected_bytes(c) == 1) flush(out);
  } else if (std::string_view("\n\t\r\b").find(c) != std::string_view::npos) {
    out += c;
  } else {
    out += printable(std::string_view(&c, 1));
  }
}

// Parameters of bytes 0x30 to 0x3F, intermediate bytes, a final byte; only colours pass. A private
// parameter ('<' to '?') makes it another sequence.
void TerminalText::take_control(char c, std::string& out) {
  if (c == kEscape) {
    state_ = State::kEscape;
    return;
  }
  if (!is_between(c, '@', '~')) {
    if (parameters_.size() <= kMaxParameters) parameters_ += c;
    return;
  }
  state_ = State::kText;
  const bool plain =
      std::ranges::all_of(parameters_, [](char p) { return is_between(p, '0', ';'); });
  if (c != 'm' || !plain || parameters_.size() > kMaxParameters) return;
  out += "\x1b[" + parameters_ + 'm';
  colored_ = !parameters_.empty() && parameters_ != "0";
}

void TerminalText::flush(std::string& out) {
  if (character_.empty()) return;
  const bool whole = utf8_length(character_) == character_.size();
  out += whole ? printable(character_) : "?";
  character_.clear();
}

}  // namespace fettle::cli
