// Text for people: lines of coloured spans fitted to a width, tables, and how numbers are written.
//
// Pure functions of their arguments. Widths are terminal columns. Whatever comes from outside
// (parameter values, output of trials) goes through printable(), so that nothing a trial prints can
// move the cursor or change colours.
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

inline constexpr int kAnyWidth = 1 << 20;  // columns where lines are not cut

enum class Ink { kPlain, kBold, kDim, kGood, kBad, kAccent };

struct Span {
  std::string text;
  Ink ink = Ink::kPlain;
};
using Line = std::vector<Span>;

// Columns that `text` takes: code points, East Asian wide ones twice.
int display_width(std::string_view text);
// Cut to at most `columns`, with an ellipsis where something was cut off.
std::string truncated(std::string_view text, int columns, const Style& style);
// Cut to at most `columns` in the middle: of an error its beginning and its end say most.
std::string shortened(std::string_view text, int columns);
// Filled up with spaces to at least `columns`.
std::string padded(std::string text, int columns, bool right_aligned = false);
// Control characters and broken UTF-8 replaced by '?', line breaks and tabs by spaces.
std::string printable(std::string_view text);
// One line, cut to `columns`, colours on where the style has them. No line break at the end.
std::string render_line(const Line& line, int columns, const Style& style);
// Several, with a line break after each.
std::string render_lines(const std::vector<Line>& lines, int columns, const Style& style);

// ---- Small pictures ----------------------------------------------------------------------------

// A bar of `columns` columns of which `fraction` (0..1, clamped) is filled.
std::string bar(double fraction, int columns, const Style& style);
// A curve of at most `columns` columns, lowest value at the bottom. More values than columns: each
// column shows the last value of its share. Empty without Unicode.
std::string sparkline(const std::vector<double>& values, int columns, const Style& style);

struct Column {
  std::string title;
  bool right_aligned = false;
};

// Columns as wide as their widest cell, two spaces between them, indented by two; a header in dim.
std::vector<Line> table(const std::vector<Column>& columns, const std::vector<Line>& rows);

// ---- Numbers -----------------------------------------------------------------------------------

// "850 ms", "6.1 s", "1m 12s", "2h 05m", "3d 04h".
std::string format_elapsed(double seconds);
// Four significant digits: 0.9012, 1.234e-05, 12.5, 3.
std::string format_number(double value);
// 4,120
std::string format_count(std::int64_t value);
// A parameter value as a person would write it: numbers short, strings without quotes.
std::string format_value(const Json& value);
// "learning_rate=0.0123 optimizer=sgd"
std::string format_parameters(const Json& parameters);
// A word that the person's shell reads back as the same word.
std::string shell_word(const std::string& word);
// "1 trial", "3 trials"
std::string plural(std::int64_t count, std::string_view noun);

}  // namespace fettle::cli
