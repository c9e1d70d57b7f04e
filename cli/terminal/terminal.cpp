#include "cli/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace fettle::cli {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Whether the locale's character set, by the environment, is UTF-8. If no variable is set, assumes
// UTF-8: terminals have had it for twenty years, and containers forget to set it.
bool locale_has_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = environment(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos ||
           value.find("utf8") != std::string_view::npos ||
           value.find("utf-8") != std::string_view::npos;
  }
  return true;
}

}  // namespace

bool stdout_is_live() { return isatty(STDOUT_FILENO) == 1 && environment("TERM") != "dumb"; }

TerminalSize size_of_stdout() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

int columns_of_stdout() {
  return isatty(STDOUT_FILENO) == 1 ? size_of_stdout().columns : kAnyWidth;
}

Style style_of_stdout() {
  return {stdout_is_live() && environment("NO_COLOR").empty(), locale_has_unicode()};
}

TerminalSize LiveScreen::room() const {
  const TerminalSize size = size_of_stdout();
  return {std::max(size.columns - 1, 1), std::max(size.rows - 1, 1)};
}

std::string LiveScreen::back_to_start() {
  const TerminalSize size = size_of_stdout();
  // A terminal that changed its width has wrapped the old frame, whose height is now unknown.
  const bool resized = rows_drawn_ > 0 && !(size == drawn_for_);
  drawn_for_ = size;
  if (resized) return "\x1b[H\x1b[2J";
  return rows_drawn_ > 0 ? "\r\x1b[" + std::to_string(rows_drawn_) + "A" : "\r";
}

void LiveScreen::draw(const std::string& frame) {
  std::string out = back_to_start();
  rows_drawn_ = 0;
  for (const char c : frame) {
    if (c == '\n') {
      out += "\x1b[K\r";  // clears the rest of the last frame's line
      ++rows_drawn_;
    }
    out += c;
  }
  write_stdout(out + "\x1b[J");
}

void LiveScreen::erase() {
  if (rows_drawn_ == 0) return;
  write_stdout(back_to_start() + "\x1b[J");
  rows_drawn_ = 0;
}

void write_stdout(const std::string& text) {
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    left.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace fettle::cli
