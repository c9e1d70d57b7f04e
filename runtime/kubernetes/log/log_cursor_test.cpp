// A log in pieces as the kubelet cuts them yields each of its lines once.
#include "runtime/kubernetes/log/log_cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/fields/timestamp.h"
#include "kube/testing/fake_log.h"

namespace fettle::kubernetes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kStart = 1'800'000'000 * kSecond;

class LogCursorTest : public testing::Test {
 protected:
  void print(const std::string& line, std::int64_t after_ns) {
    log_.append(line, kStart + after_ns);
  }
  std::string piece() const {
    const LogCursor::Window window = cursor_.next();
    kube::FakeTarget target;
    target.query = {{"timestamps", "true"}, {"limitBytes", std::to_string(window.limit_bytes)}};
    if (window.tail) target.query["tailLines"] = std::to_string(*window.tail);
    if (window.since_ms) target.query["sinceTime"] = api::format_timestamp(*window.since_ms);
    return log_.window(target).body;
  }
  // Reads one piece; returns true at the end of the log.
  bool read(bool ended = false) { return take(piece(), ended); }
  bool take(const std::string& piece, bool ended = false) {
    lines_.clear();
    return cursor_.take(piece, ended, [&](std::string_view line) { lines_.emplace_back(line); });
  }

  kube::FakeLog log_;
  LogCursor cursor_;
  std::vector<std::string> lines_;
};

TEST_F(LogCursorTest, EachLineIsReadOnceThoughPiecesOverlap) {
  print("a", 1);
  print("b", 2);
  EXPECT_TRUE(read());
  EXPECT_THAT(lines_, ElementsAre("a", "b"));
  EXPECT_TRUE(read());
  EXPECT_THAT(lines_, IsEmpty());
  print("c", 3);
  print("d", 2 * kSecond);
  EXPECT_TRUE(read());
  EXPECT_THAT(lines_, ElementsAre("c", "d"));
}

TEST_F(LogCursorTest, LinesOfOneMomentAreToldApart) {
  print("a", 5);
  print("a", 5);
  EXPECT_TRUE(read());
  EXPECT_THAT(lines_, ElementsAre("a", "a"));
  print("a", 5);
  EXPECT_TRUE(read());
  EXPECT_THAT(lines_, ElementsAre("a"));
}

TEST_F(LogCursorTest, OutputAndErrorMayBeStampedOutOfOrder) {
  print("to error", 20);
  print("to output", 10);
  EXPECT_TRUE(read());
  EXPECT_THAT(lines_, ElementsAre("to error", "to output"));
  EXPECT_TRUE(read());
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(LogCursorTest, ALineWithoutItsEndIsLeftForLater) {
  EXPECT_TRUE(take("2027-01-15T08:00:00.000000001Z a\n2027-01-15T08:00:00.000000002Z loss=0.1"));
  EXPECT_THAT(lines_, ElementsAre("a"));
  EXPECT_TRUE(take("2027-01-15T08:00:00.000000001Z a\n2027-01-15T08:00:00.000000002Z loss=0.12\n"));
  EXPECT_THAT(lines_, ElementsAre("loss=0.12"));
}

TEST_F(LogCursorTest, OfAContainerThatHasEndedTheLastLineCountsAsItIs) {
  EXPECT_TRUE(take("2027-01-15T08:00:00.000000002Z loss=0.12", /*ended=*/true));
  EXPECT_THAT(lines_, ElementsAre("loss=0.12"));
}

TEST_F(LogCursorTest, WhatTheKubeletSaysOfALogIsNotTheLog) {
  EXPECT_TRUE(take("unable to retrieve container logs for containerd://12\n", true));
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(LogCursorTest, ALongLogIsReadInGrowingPieces) {
  constexpr int kLines = 4'000;
  for (int i = 0; i < kLines; ++i) print(std::string(400, 'x'), i * kSecond / 10);
  int pieces = 0;
  std::size_t lines = 0;
  for (bool at_end = false; !at_end; ++pieces) {
    at_end = read();
    lines += lines_.size();
    ASSERT_LT(pieces, 20);
  }
  EXPECT_EQ(lines, static_cast<std::size_t>(kLines));
  EXPECT_LE(pieces, 6);
}

// More than the largest piece within a second: the middle of the second is lost, never its result.
TEST_F(LogCursorTest, AFloodIsSkippedButForItsLastLines) {
  const std::string chatter(1'000, 'x');
  print("first", 0);
  for (int i = 0; i < 8'000; ++i) print(chatter, 1 + i);
  print("in between", kSecond - 1);
  print("next second", kSecond);
  for (int i = 0; i < 8'000; ++i) print(chatter, kSecond + 1 + i);
  print("last", kSecond + 9'000);
  std::vector<std::string> words;
  int pieces = 0;
  for (bool at_end = false; !at_end; ++pieces) {
    at_end = read(/*ended=*/true);
    for (const std::string& line : lines_) {
      if (line != chatter) words.push_back(line);
    }
    ASSERT_LT(pieces, 40);
  }
  EXPECT_THAT(words, ElementsAre("first", "next second", "last"));
}

TEST_F(LogCursorTest, ALineLongerThanAnyPieceDoesNotHoldTheOthersUp) {
  print(std::string(2 * kMaxLogBytes, 'x'), 1);
  print("last", 3 * kSecond);
  std::vector<std::string> words;
  int pieces = 0;
  for (bool at_end = false; !at_end; ++pieces) {
    at_end = read(/*ended=*/true);
    words.insert(words.end(), lines_.begin(), lines_.end());
    ASSERT_LT(pieces, 20);
  }
  EXPECT_THAT(words, ElementsAre("last"));
}

TEST(LogStamp, IsReadInAnyZone) {
  const struct {
    const char* line;
    std::int64_t at_ns;
    const char* text;
  } cases[] = {
      {"2027-01-15T08:00:00.000000001Z loss=1", kStart + 1, "loss=1"},
      {"2027-01-15T08:00:00Z ", kStart, ""},
      {"2027-01-15T10:00:00.5+02:00 a b", kStart + kSecond / 2, "a b"},
      {"2027-01-15T05:30:00.123456789-02:30 x", kStart + 123'456'789, "x"},
  };
  for (const auto& c : cases) {
    const std::optional<StampedLine> line = split_stamp(c.line);
    ASSERT_TRUE(line) << c.line;
    EXPECT_EQ(line->at_ns, c.at_ns) << c.line;
    EXPECT_EQ(line->text, c.text);
  }
  for (const char* line : {"", "loss=1", "2027-01-15", "2027-01-15T08:00:00.5 x",
                           "9999-01-15T08:00:00Z x", "yesterday x"}) {
    EXPECT_FALSE(split_stamp(line)) << line;
  }
}

}  // namespace
}  // namespace fettle::kubernetes
