#include "base/line_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace fettle {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> lines_after(LineBuffer& lines, std::string_view bytes) {
  lines.add(bytes);
  std::vector<std::string> taken;
  while (const auto line = lines.take()) taken.emplace_back(*line);
  return taken;
}

TEST(LineBuffer, LinesComeWhole) {
  LineBuffer lines(100);
  EXPECT_THAT(lines_after(lines, "one\n\ntw"), ElementsAre("one", ""));
  EXPECT_EQ(lines.rest(), "tw");
  EXPECT_THAT(lines_after(lines, "o"), IsEmpty());
  EXPECT_THAT(lines_after(lines, "\nthree\n"), ElementsAre("two", "three"));
  EXPECT_EQ(lines.rest(), "");
}

TEST(LineBuffer, PassesLinesUpToTheLimitAndRefusesLongerLines) {
  LineBuffer lines(4);
  EXPECT_THAT(lines_after(lines, "1234\n12"), ElementsAre("1234"));
  EXPECT_THAT(lines_after(lines, "34"), IsEmpty());
  EXPECT_FALSE(lines.is_too_long());
  EXPECT_THAT(lines_after(lines, "\n12"), ElementsAre("1234"));
  EXPECT_THAT(lines_after(lines, "345\nnext\n"), IsEmpty());
  EXPECT_TRUE(lines.is_too_long());
}

TEST(LineBuffer, ALineWithoutAnEndIsTooLongBeforeItsEndComes) {
  LineBuffer lines(4);
  EXPECT_THAT(lines_after(lines, "12345"), IsEmpty());
  EXPECT_TRUE(lines.is_too_long());
  lines.clear();
  EXPECT_THAT(lines_after(lines, "1\n"), ElementsAre("1"));
}

}  // namespace
}  // namespace fettle
