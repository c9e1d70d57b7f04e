#include "cli/terminal/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace fettle::cli {
namespace {

const Style kUnicode = {.color = false, .unicode = true};
const Style kAscii = {.color = false, .unicode = false};

TEST(Printable, LeavesNothingThatCouldMoveTheCursor) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a?[2Jb");
  EXPECT_EQ(printable("a\nb\tc\rd"), "a b c d");
  EXPECT_EQ(printable("bell\a del\x7f"), "bell? del?");
  EXPECT_EQ(printable("c1 \xc2\x9b"), "c1 ?");        // CSI as one character
  EXPECT_EQ(printable("rtl \xe2\x80\xae"), "rtl ?");  // text direction
  EXPECT_EQ(printable("broken \xff\xc3"), "broken ??");
  EXPECT_EQ(printable("größe 学習"), "größe 学習");
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("größe"), 5);
  EXPECT_EQ(display_width("学習"), 4);
  EXPECT_EQ(display_width("e\xcc\x81"), 1);  // e and a combining accent
}

TEST(Truncated, SaysThatSomethingIsMissing) {
  EXPECT_EQ(truncated("abcdef", 6, kUnicode), "abcdef");
  EXPECT_EQ(truncated("abcdef", 4, kUnicode), "abc…");
  EXPECT_EQ(truncated("abcdef", 4, kAscii), "abc~");
  EXPECT_EQ(truncated("学習学習", 4, kUnicode), "学…");
  EXPECT_EQ(truncated("abc", 0, kUnicode), "");
}

TEST(RenderLine, ColoursOnlyWhereAsked) {
  const Line line = {{"ok", Ink::kGood}, {" then"}};
  EXPECT_EQ(render_line(line, 80, kUnicode), "ok then");
  EXPECT_EQ(render_line(line, 80, {.color = true}), "\x1b[32mok\x1b[0m then");
  EXPECT_EQ(render_line(line, 5, kUnicode), "ok t…");
}

TEST(Bar, FillsInEighths) {
  EXPECT_EQ(bar(0.5, 4, kUnicode), "██░░");
  EXPECT_EQ(bar(0.40625, 4, kUnicode), "█▋░░");
  EXPECT_EQ(bar(1, 4, kUnicode), "████");
  EXPECT_EQ(bar(0.5, 4, kAscii), "##--");
  EXPECT_EQ(bar(7, 2, kUnicode), "██");
  EXPECT_EQ(bar(std::numeric_limits<double>::quiet_NaN(), 2, kUnicode), "░░");
}

TEST(Sparkline, ShowsTheShape) {
  EXPECT_EQ(sparkline({0, 1, 2, 3, 4, 5, 6, 7}, 20, kUnicode), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline({0, 0, 7, 7}, 2, kUnicode), "▁█");
  EXPECT_EQ(sparkline({3, 3}, 20, kUnicode), "▁▁");
  EXPECT_EQ(sparkline({1, 2}, 20, kAscii), "");
}

TEST(Numbers, AsPeopleWriteThem) {
  EXPECT_EQ(format_elapsed(0.85), "850 ms");
  EXPECT_EQ(format_elapsed(6.1), "6.1 s");
  EXPECT_EQ(format_elapsed(59.96), "1m 00s");
  EXPECT_EQ(format_elapsed(72), "1m 12s");
  EXPECT_EQ(format_elapsed(7500), "2h 05m");
  EXPECT_EQ(format_elapsed(100'000), "1d 03h");
  EXPECT_EQ(format_elapsed(-1), "-");
  EXPECT_EQ(format_number(0.90123456), "0.9012");
  EXPECT_EQ(format_number(123456), "123456");
  EXPECT_EQ(format_number(1.2345e-5), "1.234e-05");
  EXPECT_EQ(format_number(std::numeric_limits<double>::infinity()), "infinity");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
  EXPECT_EQ(format_count(-123), "-123");
  EXPECT_EQ(plural(1, "trial"), "1 trial");
  EXPECT_EQ(plural(1200, "trial"), "1,200 trials");
  EXPECT_EQ(format_parameters(Json::object({{"rate", 0.0123456}, {"name", "a\nb"}, {"on", true}})),
            "rate=0.01235 name=a b on=true");
}

TEST(Text, ShortenedKeepsTheBeginningAndTheEnd) {
  EXPECT_EQ(shortened("as it is", 8), "as it is");
  EXPECT_EQ(shortened("exit code 1: Traceback; many lines; ValueError: no such file", 30),
            "exit code…eError: no such file");
  EXPECT_LE(display_width(shortened("日本語日本語日本語日本語", 10)), 10);
}

}  // namespace
}  // namespace fettle::cli
