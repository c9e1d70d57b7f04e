// A feed's parts and positions.
#include "cli/serve/feeds/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fettle::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FeedPosition, IsReadAsItIsWritten) {
  const FeedPosition position{12, 345};
  EXPECT_EQ(position.text(), "12-345");
  EXPECT_EQ(FeedPosition::parse("12-345"), position);
  for (const char* text : {"", "12", "-", "12-", "-3", "1-2-3", "a-1", "1-b", " 1-2", "1--2",
                           "99999999999999999999-1"}) {
    EXPECT_FALSE(FeedPosition::parse(text)) << text;
  }
}

TEST(Feed, TellsWhatHasChangedSinceInItsOrder) {
  Feed feed(7);
  feed.set("a", "1");
  feed.set("b", "1");
  const FeedPosition before = feed.here();
  EXPECT_THAT(feed.changed_since(before), IsEmpty());
  feed.set("c", "1");
  feed.set("a", "2");
  feed.set("b", "1");  // no change
  EXPECT_THAT(feed.changed_since(before), ElementsAre("c", "a"));
  EXPECT_EQ(feed.part("a"), "2");
}

TEST(Feed, TellsAPartOnceHoweverOftenItChanged) {
  Feed feed(7);
  feed.set("a", "1");
  const FeedPosition before = feed.here();
  for (int i = 0; i < 1000; ++i) feed.set("a", std::to_string(i));
  EXPECT_THAT(feed.changed_since(before), ElementsAre("a"));
}

TEST(Feed, KnowsPositionsOfItsEpochOnly) {
  Feed feed(7);
  feed.set("a", "1");
  const FeedPosition old = feed.here();
  EXPECT_TRUE(feed.knows(old));
  EXPECT_FALSE(feed.knows({7, 2})) << "of the future";
  EXPECT_FALSE(feed.knows({6, 1}));
  feed.remove("b");
  EXPECT_TRUE(feed.knows(old)) << "nothing was removed";
  feed.remove("a");
  EXPECT_FALSE(feed.knows(old));
  EXPECT_THAT(feed.changed_since({feed.here().epoch, 0}), IsEmpty());
}

}  // namespace
}  // namespace fettle::cli
