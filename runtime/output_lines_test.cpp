// The lines that a terminal would be left with.
#include "runtime/output_lines.h"

#include <gtest/gtest.h>

#include <vector>

namespace fettle::runtime {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(std::string_view output, std::size_t piece = std::string::npos) {
  Lines lines;
  OutputLines reader;
  const auto on_line = [&](std::string_view line, bool cut) {
    lines.push_back(cut ? "(cut)" : std::string(line));
  };
  for (; !output.empty(); output.remove_prefix(std::min(piece, output.size()))) {
    reader.feed(output.substr(0, piece), on_line);
  }
  reader.finish(on_line);
  return lines;
}

TEST(OutputLines, KeepsTheTextLeftOnTheScreen) {
  const struct {
    const char* what;
    std::string output;
    Lines lines;
  } cases[] = {
      {"plain lines", "one\ntwo\n\nthree", {"one", "two", "", "three"}},
      {"lines of Windows", "one\r\ntwo\r\n", {"one", "two"}},
      {"of a terminal in between", "one\r\r\ntwo\r\r\n", {"one", "two"}},
      {"a bar", "\r 0% loss=3\r50% loss=2\r100% loss=1\nend\n", {"100% loss=1", "end"}},
      {"a bar that is wiped", "\r100%|###|\r     \rdone\n", {"done"}},
      {"print(..., end=\"\\r\")", "loss=2\rloss=1\r", {"loss=1"}},
      {"and a line after it", "loss=2\rloss=1\r\nend", {"loss=1", "end"}},
      {"colours", "loss=\x1b[32m0.5\x1b[0m \x1b[1;38;5;9mx\x1b[m\n", {"loss=0.5 x"}},
      {"a link and a title", "\x1b]8;;http://a\x1b\\a\x1b]8;;\x1b\\ \x1b]0;t\ab\n", {"a b"}},
      {"a byte order mark", "\xEF\xBB\xBF{\"loss\": 1}\n", {"{\"loss\": 1}"}},
      {"nested bars",
       "outer 0/2\n\rinner 1 loss=9\x1b[A\n\rinner 2 loss=8\x1b[A\router 1/2\n",
       {"outer 0/2", "", "outer 1/2"}},
      {"an erased line", "loss=9\x1b[2Kloss=1\n", {"loss=1"}},
      {"half a sequence", "a\x1b\nb\x1b[\nc\x1b[3\nd\x1b]0;t", {"a", "b", "c", "d"}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(lines_of(c.output), c.lines) << c.what;
    for (std::size_t piece = 1; piece < c.output.size(); ++piece) {
      EXPECT_EQ(lines_of(c.output, piece), c.lines) << c.what << " in pieces of " << piece;
    }
  }
}

TEST(OutputLines, ABarOfAnyLengthIsItsLastState) {
  std::string bar;
  for (int i = 100'000; i > 0; --i) bar += "\r100%|####| loss=" + std::to_string(i);
  EXPECT_EQ(lines_of(bar + "\n"), (Lines{"100%|####| loss=1"}));
  EXPECT_EQ(lines_of(bar + "\n", 1000), (Lines{"100%|####| loss=1"}));
}

TEST(OutputLines, KeepsTheEndOfALongLineAndMarksTheCut) {
  const std::string dots(3 * kMaxLineBytes, '.');
  for (const std::size_t piece : {std::size_t{1} << 30, std::size_t{4096}, kMaxLineBytes + 1}) {
    std::string last;
    bool was_cut = false;
    OutputLines reader;
    const auto on_line = [&](std::string_view line, bool cut) {
      last = line;
      was_cut = cut;
    };
    const std::string text = dots + " lost=0.5 " + dots + " loss=0.5\n";
    for (std::size_t at = 0; at < text.size(); at += piece) {
      reader.feed(std::string_view(text).substr(at, piece), on_line);
    }
    EXPECT_EQ(last, " loss=0.5") << piece;
    EXPECT_TRUE(was_cut);
    reader.feed("next\n", on_line);
    EXPECT_EQ(last, "next");
    EXPECT_FALSE(was_cut);
  }
}

}  // namespace
}  // namespace fettle::runtime
