#include "kube/watch/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fettle::kube {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Thing {
  api::Metadata metadata;
  std::string group;
};

Thing thing(const std::string& name, const std::string& version, const std::string& uid = "u",
            const std::string& group = "") {
  Thing out;
  out.metadata.ns = "team";
  out.metadata.name = name;
  out.metadata.uid = uid;
  out.metadata.resource_version = version;
  out.group = group;
  return out;
}

class CacheTest : public testing::Test {
 protected:
  using Pointer = Cache<Thing>::Pointer;
  CacheTest() {
    cache_.index_by([](const Thing& thing) { return thing.group; });
    cache_.on_change([this](const Pointer& before, const Pointer& after) {
      told_.push_back(text(before) + " -> " + text(after));
    });
  }
  static std::string text(const Pointer& thing) {
    return thing == nullptr ? "-" : thing->metadata.name + '@' + thing->metadata.resource_version;
  }
  // Returns the listener's calls since the last call.
  std::vector<std::string> told() { return std::exchange(told_, {}); }
  std::string here(const std::string& name) { return text(cache_.get({"team", name})); }
  std::vector<std::string> group(const std::string& name) {
    std::vector<std::string> out;
    for (const Pointer& thing : cache_.group(name)) out.push_back(text(thing));
    return out;
  }

  Cache<Thing> cache_;
  std::vector<std::string> told_;
};

TEST_F(CacheTest, ObjectsOnlyBecomeNewer) {
  cache_.put(thing("a", "9"));
  cache_.put(thing("a", "10"));
  cache_.put(thing("a", "9"));
  cache_.put(thing("a", "10"));
  EXPECT_EQ(here("a"), "a@10");
  EXPECT_THAT(told(), ElementsAre("- -> a@9", "a@9 -> a@10"));
}

TEST_F(CacheTest, AWriteIsReadBackBeforeTheWatchSawIt) {
  cache_.replace({thing("a", "5")}, "5");
  cache_.put(thing("a", "8"));  // what the API server answered
  cache_.put(thing("a", "7"));  // the watch, behind
  EXPECT_EQ(here("a"), "a@8");
}

TEST_F(CacheTest, DeletedObjectsDoNotComeBack) {
  cache_.put(thing("a", "5", "first"));
  cache_.erase({"team", "a"}, "first", "8");
  cache_.put(thing("a", "7", "first"));
  cache_.put(thing("a", "9", "first"));
  EXPECT_EQ(here("a"), "-");
  cache_.put(thing("a", "10", "second"));
  EXPECT_EQ(here("a"), "a@10");
  cache_.erase({"team", "a"}, "first", "8");
  EXPECT_EQ(here("a"), "a@10") << "a late notice of the first one's deletion";
  EXPECT_THAT(told(), ElementsAre("- -> a@5", "a@5 -> -", "- -> a@10"));
}

TEST_F(CacheTest, ADeletionWithoutAVersionHoldsForItsUid) {
  cache_.put(thing("a", "5", "first"));
  cache_.erase({"team", "a"}, "first", "");
  cache_.put(thing("a", "6", "first"));
  EXPECT_EQ(here("a"), "-");
  cache_.put(thing("a", "6", "second"));
  EXPECT_EQ(here("a"), "a@6");
}

TEST_F(CacheTest, AnAnswerThatComesAfterTheWatchSawTheDeletionIsOld) {
  cache_.replace({}, "5");
  cache_.advance("", "20");
  cache_.put(thing("a", "12"));  // created and deleted in between
  EXPECT_EQ(here("a"), "-");
  cache_.put(thing("a", "21"));
  EXPECT_EQ(here("a"), "a@21");
}

TEST_F(CacheTest, AListFindsMissedDeletions) {
  cache_.replace({thing("a", "3"), thing("b", "4")}, "5");
  EXPECT_TRUE(cache_.synced());
  (void)told();
  cache_.replace({thing("b", "7")}, "9");
  EXPECT_THAT(told(), ElementsAre("b@4 -> b@7", "a@3 -> -"));
  cache_.put(thing("a", "8"));
  EXPECT_EQ(here("a"), "-");
}

TEST_F(CacheTest, AListKeepsLaterWrites) {
  cache_.put(thing("a", "3"));
  const std::uint64_t mark = cache_.mark();
  cache_.put(thing("new", "12"));
  cache_.put(thing("a", "13"));
  cache_.put(thing("seen", "8"));
  cache_.replace({thing("a", "3")}, "10", {"", mark});
  EXPECT_EQ(here("new"), "new@12");
  EXPECT_EQ(here("a"), "a@13");
  EXPECT_EQ(here("seen"), "-") << "older than the list, which would have shown it";
}

TEST_F(CacheTest, AListRestoresNoLaterDeletion) {
  cache_.put(thing("a", "3"));
  const std::uint64_t mark = cache_.mark();
  cache_.erase({"team", "a"}, "u", "");
  cache_.replace({thing("a", "3")}, "10", {"", mark});
  EXPECT_EQ(here("a"), "-");
}

TEST_F(CacheTest, AListOverrulesTheCacheIfVersionsWentBack) {
  cache_.replace({thing("a", "100"), thing("b", "101")}, "101");
  cache_.erase({"team", "b"}, "u", "102");
  const std::uint64_t mark = cache_.mark();
  cache_.replace({thing("a", "50"), thing("b", "51")}, "60", {"", mark});
  EXPECT_EQ(here("a"), "a@50");
  EXPECT_EQ(here("b"), "b@51");
  cache_.put(thing("c", "61"));
  EXPECT_EQ(here("c"), "c@61");
}

TEST_F(CacheTest, GroupsFollowTheirObjects) {
  cache_.put(thing("b", "1", "u", "x"));
  cache_.put(thing("a", "2", "u", "x"));
  cache_.put(thing("c", "3", "u", ""));
  EXPECT_THAT(group("x"), ElementsAre("a@2", "b@1"));
  cache_.put(thing("a", "4", "u", "y"));
  EXPECT_THAT(group("x"), ElementsAre("b@1"));
  EXPECT_THAT(group("y"), ElementsAre("a@4"));
  cache_.erase({"team", "b"}, "u", "5");
  EXPECT_THAT(group("x"), IsEmpty());
  EXPECT_THAT(group(""), IsEmpty());
  EXPECT_EQ(cache_.all().size(), 2U);
}

TEST(Cache, AGroupIsInTheOrderThatWasAskedFor) {
  Cache<Thing> cache;
  cache.index_by([](const Thing& thing) { return thing.group; },
                 [](const Thing& thing) { return std::stoll(thing.metadata.uid); });
  for (const char* place : {"10", "2", "33", "2"}) {
    cache.put(thing(std::string("t") + place, std::to_string(cache.size() + 1), place, "x"));
  }
  cache.put(thing("other", "5", "2", "x"));
  cache.put(thing("t33", "6", "1", "x"));
  std::vector<std::string> names;
  cache.visit_group("x", [&](const Thing& one) { names.push_back(one.metadata.name); });
  EXPECT_THAT(names, ElementsAre("t33", "other", "t2", "t10"));
  cache.erase({"team", "t2"}, "2", "7");
  EXPECT_EQ(cache.group("x").size(), 3U);
  EXPECT_EQ(cache.group("x")[1]->metadata.name, "other");
}

TEST_F(CacheTest, ListsOfNamespacesLeaveOthersAlone) {
  cache_.expect({"team", "else"});
  cache_.replace({thing("a", "3")}, "5", {"team", 0});
  EXPECT_FALSE(cache_.synced());
  cache_.replace({}, "6", {"else", 0});
  EXPECT_TRUE(cache_.synced());
  EXPECT_EQ(here("a"), "a@3");
}

TEST_F(CacheTest, TombstonesAreBounded) {
  for (std::size_t i = 0; i <= kMaxTombstones; ++i) {
    cache_.erase({"team", "t-" + std::to_string(i)}, "u", "5");
  }
  cache_.put(thing("t-1", "4"));
  EXPECT_EQ(here("t-1"), "-");
  cache_.put(thing("t-0", "4"));
  EXPECT_EQ(here("t-0"), "t-0@4") << "the oldest is forgotten";
}

}  // namespace
}  // namespace fettle::kube
