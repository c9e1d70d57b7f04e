#include "cli/terminal/terminal_text.h"

#include <gtest/gtest.h>

namespace fettle::cli {
namespace {

std::string shown(const std::string& output) {
  TerminalText text;
  const std::string begun = text.feed(output);
  return begun + text.finish();
}

TEST(TerminalText, TextAndColoursPass) {
  for (const char* text : {"", "a\tb\r\nc\b", "größe ━━ 100%|█████", "\x1b[1;32mgood\x1b[0m\x1b[0m",
                           "\x1b[m\x1b[0m", "\x1b[38;5;12mx\x1b[38:2::1:2:3m\x1b[0m"}) {
    EXPECT_EQ(shown(text), text);
  }
  EXPECT_EQ(shown("\x1b[31mred"), "\x1b[31mred\x1b[0m") << "colours end with the output";
}

TEST(TerminalText, ControlSequencesAreLeftOut) {
  const struct {
    std::string output;
    const char* shown;
  } cases[] = {
      {"a\x1b]52;c;ZXZpbA==\x07z", "az"},  // the clipboard
      {"a\x1b]0;title\x1b\\z", "az"},
      {"a\x1b]8;;http://x\x07link\x1b]8;;\x07z", "alinkz"},
      {"a\x1b[2J\x1b[H\x1b[1A\x1b[6nz", "az"},   // clears, moves, asks
      {"a\x1b[?1049h\x1b[>4;1m\x1b[!pz", "az"},  // modes, keyboard, reset
      {"a\x1bPq#0\x1b\\z\x1b_x\x1b\\z", "azz"},  // images, programs' own
      {"a\x1b"
       "c\x1b(0z",
       "a0z"},  // a reset; a character set, of which '(' goes
      {"a\x1b]0;no end\nz", "a\nz"},
      {"a\x1b[12\nz", "a\nz"},
      {"a\x1b", "a"},
      {"\x07\x0e\x7f", "???"},
      {"a\xc2\x9b"
       "2Jz",
       "a?2Jz"},  // C1, as a character
      {"a\x9b"
       "2Jz",
       "a?2Jz"},  // C1, as a byte
      {"\xe2\x80\xae"
       "evil",
       "?evil"},  // reorders what follows
      {"\xe2\x82", "?"},
      {"\xe2\x82z", "?z"},
      {"a\x1b[" + std::string(1000, '1') + "mz", "az"},
      {"a\x1b\x1b]0;t\x07z", "az"},
  };
  for (const auto& c : cases) EXPECT_EQ(shown(c.output), c.shown) << c.output;
}

TEST(TerminalText, AnyPiecesGiveTheSame) {
  const std::string output = "ä\x1b[32mgrün\x1b[0m\x1b]0;t\x1b\\ ━\xff\x1b[?25l end\n";
  for (std::size_t size = 1; size < output.size(); ++size) {
    TerminalText text;
    std::string pieces;
    for (std::size_t at = 0; at < output.size(); at += size) {
      pieces += text.feed(std::string_view(output).substr(at, size));
    }
    EXPECT_EQ(pieces + text.finish(), shown(output)) << size;
  }
}

}  // namespace
}  // namespace fettle::cli
