// Readers of a feed under a clock of the test: their pace, their lag, and their end.
#include "cli/serve/feeds/audience.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace fettle::cli {
namespace {

using testing::HasSubstr;

struct FakeSink final : EventSink {
  bool send(std::string_view bytes) override {
    if (closed || is_full) return false;
    ++sends;
    text += bytes;
    unread += bytes.size();
    return true;
  }
  void end() override { closed = true; }
  bool is_closed() const override { return closed; }
  std::size_t pending() const override { return unread; }

  std::string text;
  std::size_t unread = 0;
  int sends = 0;
  bool closed = false;
  bool is_full = false;
};

class AudienceTest : public testing::Test {
 protected:
  std::shared_ptr<FakeSink> join() {
    auto sink = std::make_shared<FakeSink>();
    audience_.add(sink, std::nullopt);
    return sink;
  }
  // Lets time pass; `reading` read everything at once, other readers nothing.
  void pass(std::int64_t ms, const std::vector<std::shared_ptr<FakeSink>>& reading) {
    for (const std::int64_t end = now_ms_ + ms; now_ms_ < end; now_ms_ += 50) {
      audience_.pump(
          [this](std::optional<FeedPosition>& position) {
            ++told_;
            const std::string text = position == feed_.here() ? "" : "event: " + piece_ + "\n\n";
            position = feed_.here();
            return text;
          },
          now_ms_);
      for (const auto& sink : reading) sink->unread = 0;
    }
  }

  std::int64_t now_ms_ = 1'000'000;
  Feed feed_{1};
  std::string piece_ = "change";
  int told_ = 0;
  Audience audience_;
};

TEST_F(AudienceTest, AReaderGetsAtMostFourEventsASecond) {
  const auto sink = join();
  for (int i = 0; i < 100; ++i) {  // ten changes a second for ten seconds
    feed_.set("a", std::to_string(i));
    pass(100, {sink});
  }
  EXPECT_LE(sink->sends, 42);
  EXPECT_GE(sink->sends, 38);
}

TEST_F(AudienceTest, AQuietReaderGetsAComment) {
  const auto sink = join();
  feed_.set("a", "1");
  pass(Audience::kCommentEveryMs - 500, {sink});
  EXPECT_EQ(sink->sends, 2);  // "retry" and the event
  pass(1'000, {sink});
  EXPECT_EQ(sink->sends, 3);
  EXPECT_THAT(sink->text, HasSubstr(": still here"));
}

TEST_F(AudienceTest, AReaderThatNeverReadsCostsBoundedMemory) {
  const auto reads = join();
  const auto never = join();
  piece_ = std::string(50'000, 'x');
  for (int i = 0; i < 24 * 3600; i += 10) {  // a day
    feed_.set("a", std::to_string(i));
    pass(1'000, {reads});
    now_ms_ += 9'000;
  }
  EXPECT_LE(never->text.size(), Audience::kMostUnread + piece_.size() + 100);
  EXPECT_GT(reads->sends, 8'000);
  // Once it reads again, it gets the present state.
  const int before = never->sends;
  never->unread = 0;
  pass(300, {reads, never});
  EXPECT_EQ(never->sends, before + 1);
}

TEST_F(AudienceTest, TwentyReadersAreToldOnce) {
  std::vector<std::shared_ptr<FakeSink>> sinks;
  for (int i = 0; i < 20; ++i) sinks.push_back(join());
  pass(300, sinks);
  told_ = 0;
  feed_.set("a", "1");
  pass(50, sinks);
  EXPECT_EQ(told_, 1);
  for (const auto& sink : sinks) EXPECT_THAT(sink->text, HasSubstr("event: change"));
}

TEST_F(AudienceTest, ReadersWhoHaveGoneAreForgotten) {
  const auto gone = join();
  const auto full = join();
  gone->closed = true;
  full->is_full = true;
  feed_.set("a", "1");
  pass(50, {});
  EXPECT_TRUE(audience_.is_empty());
  EXPECT_TRUE(full->closed);
}

TEST_F(AudienceTest, EndsAllStreams) {
  const auto sink = join();
  audience_.end();
  EXPECT_TRUE(sink->closed);
  EXPECT_TRUE(audience_.is_empty());
}

}  // namespace
}  // namespace fettle::cli
