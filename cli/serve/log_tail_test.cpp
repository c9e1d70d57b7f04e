// The output of a trial, as its page gets it.
#include "cli/serve/log_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fettle::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(LogTail, SendsWholeLinesAndTheRestAtTheEnd) {
  LogTail tail(0);
  EXPECT_THAT(tail.take(), IsEmpty());
  tail.print("one\ntw");
  EXPECT_EQ(tail.take(), "id: 4\nevent: log\ndata: {\"text\":\"one\\n\",\"skipped\":0}\n\n");
  EXPECT_THAT(tail.take(), IsEmpty());
  tail.print("o");
  tail.end("it was killed");
  EXPECT_THAT(tail.take(), AllOf(HasSubstr("id: 7\n"), HasSubstr("\"two\""),
                                 HasSubstr("event: end\ndata: {\"message\":\"it was killed\"}")));
  EXPECT_TRUE(tail.is_over());
  EXPECT_THAT(tail.take(), IsEmpty());
}

TEST(LogTail, ResumesWhereAReaderWas) {
  LogTail tail(6);
  tail.print("one\n");
  EXPECT_THAT(tail.take(), IsEmpty());
  tail.print("two\nthree\n");
  EXPECT_THAT(tail.take(), AllOf(HasSubstr("id: 14\n"), HasSubstr("\"o\\nthree\\n\"")));
}

TEST(LogTail, AFloodKeepsItsEnd) {
  LogTail tail(0);
  for (int i = 0; i < 100'000; ++i) tail.print("line " + std::to_string(i) + '\n');
  const std::string events = tail.take();
  EXPECT_LT(events.size(), 2 * LogTail::kMostText);
  EXPECT_THAT(events, AllOf(HasSubstr("line 99999\\n"), Not(HasSubstr("\"skipped\":0"))));
}

TEST(LogTail, ALongLineWithoutAnEndIsSentAllTheSame) {
  LogTail tail(0);
  tail.print(std::string(LogTail::kMostText, 'x'));
  EXPECT_THAT(tail.take(), HasSubstr("xxxx"));
}

TEST(LogTail, IsTextForAPage) {
  EXPECT_EQ(log_text("\x1b[31mred\x1b[0m\n"), "red\n");
  EXPECT_EQ(log_text("1 %\r2 %\r\n"), "1 %\n2 %\n");
  EXPECT_EQ(log_text("\x1b]52;c;evil\x07ok\n"), "ok\n");
  EXPECT_EQ(log_text("a\xff"
                     "b"),
            "a?b");
}

}  // namespace
}  // namespace fettle::cli
