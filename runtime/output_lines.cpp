#include "runtime/output_lines.h"

#include <algorithm>

namespace fettle::runtime {
namespace {

constexpr char kEscape = '\x1b';
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_between(char c, char low, char high) { return c >= low && c <= high; }

// The length of the escape sequence at the beginning of a text, and whether it erases the text
// before it.
struct Escape {
  std::size_t length = 0;
  bool hides = false;
};

// ESC [ parameters, intermediate bytes, a final byte (ECMA-48, 5.4).
Escape read_control_sequence(std::string_view text) {
  std::size_t at = 2;
  while (at < text.size() && is_between(text[at], '0', '?')) ++at;
  const std::string_view parameters = text.substr(2, at - 2);
  while (at < text.size() && is_between(text[at], ' ', '/')) ++at;
  if (at == text.size() || !is_between(text[at], '@', '~')) return {at};
  const char final_byte = text[at];
  const bool goes_up = final_byte == 'A' || final_byte == 'F';
  const bool erases_line = final_byte == 'K' && parameters == "2";
  return {at + 1, goes_up || erases_line};
}

// ESC ] text, up to BEL or ESC \ (titles of windows, links).
Escape read_command(std::string_view text) {
  const std::size_t bell = text.find('\a');
  const std::size_t terminator = text.find("\x1b\\", 2);
  if (terminator < bell) return {terminator + 2};
  return {bell == text.npos ? text.size() : bell + 1};
}

Escape read_escape(std::string_view text) {
  if (text.size() < 2) return {text.size()};
  if (text[1] == '[') return read_control_sequence(text);
  if (text[1] == ']') return read_command(text);
  return {2};
}

}  // namespace

std::string_view shown_text(std::string_view line, std::string& room) {
  if (line.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    line.remove_prefix(kByteOrderMark.size());
  }
  std::size_t escape = line.find(kEscape);
  if (escape == line.npos) return line;
  room.clear();
  for (; escape != line.npos; escape = line.find(kEscape)) {
    room += line.substr(0, escape);
    line.remove_prefix(escape);
    const Escape read = read_escape(line);  // of at least the escape character, so this ends
    if (read.hides) room.clear();
    line.remove_prefix(read.length);
  }
  room += line;
  return room;
}

void OutputLines::feed(std::string_view bytes, const OnLine& on_line) {
  bytes_ += std::ssize(bytes);
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, newline);
    const bool whole = newline != std::string_view::npos;
    const bool plain = partial_.empty() && !returned_ && piece.size() <= kMaxLineBytes &&
                       piece.find('\r') == piece.npos;
    if (whole && plain) {
      emit(piece, on_line);  // the usual case: no copy
    } else {
      take(piece);
      if (whole) finish(on_line);
    }
    if (!whole) return;
    bytes.remove_prefix(newline + 1);
  }
}

void OutputLines::finish(const OnLine& on_line) {
  if (cut_) {
    // Only the last kMaxLineBytes count, and the first word of them may be only half a word.
    const std::size_t excess = partial_.size() - std::min(partial_.size(), kMaxLineBytes);
    const std::size_t space = partial_.find(' ', excess);
    partial_.erase(0, space == partial_.npos ? partial_.size() : space);
  }
  if (!partial_.empty()) emit(partial_, on_line);
  restart();
}

// Takes a part of a line, without a newline.
void OutputLines::take(std::string_view piece) {
  if (piece.empty()) return;
  if (returned_ && piece.front() != '\r') restart();  // text follows the carriage return
  const std::size_t last = piece.find_last_not_of('\r');
  const std::string_view text = piece.substr(0, last == piece.npos ? 0 : last + 1);
  if (!text.empty()) {
    const std::size_t anew = text.rfind('\r');
    if (anew != text.npos) restart();
    append(anew == text.npos ? text : text.substr(anew + 1));
  }
  // The next byte after a carriage return decides: more text begins the line again, a newline ends
  // the line as it is.
  if (text.size() < piece.size()) returned_ = true;
}

void OutputLines::append(std::string_view text) {
  if (text.size() > kMaxLineBytes) {
    cut_ = true;
    partial_.clear();
    text.remove_prefix(text.size() - kMaxLineBytes);
  }
  partial_ += text;
  if (partial_.size() <= kMaxLineBytes) return;
  cut_ = true;
  // finish() removes the excess; at twice the size it is removed now, to bound the memory.
  if (partial_.size() > 2 * kMaxLineBytes) partial_.erase(0, partial_.size() - kMaxLineBytes);
}

void OutputLines::restart() {
  partial_.clear();
  returned_ = false;
  cut_ = false;
}

void OutputLines::emit(std::string_view text, const OnLine& on_line) {
  on_line(shown_text(text, shown_), cut_);
}

}  // namespace fettle::runtime
