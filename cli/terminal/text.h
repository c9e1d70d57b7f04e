// Text for people: lines of coloured spans fitted to a width, tables, and the format of numbers.
//
// Pure functions of their arguments. Widths are terminal columns. All text from outside (parameter
// values, output of trials) goes through printable(), so that nothing a trial prints can move the
// cursor or change colours.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace fettle::cli {

// ---- What the terminal can show ----------------------------------------------------------------

struct Style {
  bool color = false;   // ANSI colours (never with NO_COLOR or into a file)
  bool unicode = true;  // bars and sparklines from block characters, otherwise from ASCII
};

inline constexpr int kAnyWidth = 1 << 20;  // columns if lines are not cut

enum class Ink { kPlain, kBold, kDim, kGood, kBad, kAccent };

struct Span {
  std::string text;
  Ink ink = Ink::kPlain;
};
using Line = std::vector<Span>;

// Returns the columns of `text`: its code points; East Asian wide characters count twice.
int display_width(std::string_view text);
// Cuts to at most `columns`, with an ellipsis in place of the rest.
std::string truncated(std::string_view text, int columns, const Style& style);
// Cuts the middle to at most `columns`: the beginning and the end of an error say most.
std::string shortened(std::string_view text, int columns);
// Pads with spaces to at least `columns`.
std::string padded(std::string text, int columns, bool right_aligned = false);
// Replaces control characters and broken UTF-8 by '?', line breaks and tabs by spaces.
std::string printable(std::string_view text);
// Renders one line, cut to `columns`, with colours if the style has them, without a line break.
std::string render_line(const Line& line, int columns, const Style& style);
// Renders several lines, with a line break after each.
std::string render_lines(const std::vector<Line>& lines, int columns, const Style& style);

// ---- Small pictures ----------------------------------------------------------------------------

// Draws a bar of `columns` columns, filled by `fraction` (clamped to 0..1).
std::string bar(double fraction, int columns, const Style& style);
// Draws a curve of at most `columns` columns, lowest value at the bottom. If there are more values,
// each column shows the last value of its share. Empty without Unicode.
std::string sparkline(const std::vector<double>& values, int columns, const Style& style);

struct Column {
  std::string title;
  bool right_aligned = false;
};

// Makes columns as wide as their widest cell, two spaces between, indented by two; a dim header.
std::vector<Line> table(const std::vector<Column>& columns, const std::vector<Line>& rows);

// ---- Numbers -----------------------------------------------------------------------------------

// "850 ms", "6.1 s", "1m 12s", "2h 05m", "3d 04h".
std::string format_elapsed(double seconds);
// Four significant digits: 0.9012, 1.234e-05, 12.5, 3.
std::string format_number(double value);
// 4,120
std::string format_count(std::int64_t value);
// Formats a parameter value as a person would write it: numbers short, strings without quotes.
std::string format_value(const Json& value);
// "learning_rate=0.0123 optimizer=sgd"
std::string format_parameters(const Json& parameters);
// Quotes a word so that the person's shell reads back the same word.
std::string shell_word(const std::string& word);
// "1 trial", "3 trials"
std::string plural(std::int64_t count, std::string_view noun);

}  // namespace fettle::cli
