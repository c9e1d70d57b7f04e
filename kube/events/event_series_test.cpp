#include "kube/events/event_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/objects/json_path.h"

namespace fettle::kube {
namespace {

constexpr std::int64_t kStart = 1767225600000;  // 2026-01-01T00:00:00Z
constexpr std::int64_t kMinute = 60'000;

Occurrence occurrence(std::int64_t at_ms, const std::string& note = "no room") {
  Occurrence out;
  out.about = {kStudies, {"team", "digits"}, "uid-1", "7"};
  out.warning = true;
  out.reason = "Unschedulable";
  out.note = note;
  out.at_ms = at_ms;
  return out;
}

std::int64_t count(const EventWrite& write) { return integer_at(write.body, {"series", "count"}); }

class EventSeriesTest : public testing::Test {
 protected:
  EventSeries series_{"fettle.dev/operator", "fettle-operator-abc"};
};

TEST_F(EventSeriesTest, TheFirstOccurrenceIsAnEvent) {
  const auto write = series_.add(occurrence(kStart));
  ASSERT_TRUE(write);
  EXPECT_TRUE(write->create);
  const Json expected = parse_json(R"({
      "apiVersion": "events.k8s.io/v1", "kind": "Event",
      "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Warning", "reason": "Unschedulable",
      "action": "Unschedulable", "note": "no room", "reportingController": "fettle.dev/operator",
      "reportingInstance": "fettle-operator-abc",
      "regarding": {"apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "namespace": "team",
                    "name": "digits", "uid": "uid-1", "resourceVersion": "7"}})")
                            .value();
  Json body = write->body;
  EXPECT_EQ(key_of(body), write->key);
  EXPECT_EQ(write->key.ns, "team");
  EXPECT_TRUE(write->key.name.starts_with("digits.")) << write->key.name;
  body.erase("metadata");
  EXPECT_EQ(body, expected);
}

TEST_F(EventSeriesTest, TheSecondBeginsASeriesThatCountsTheRest) {
  const auto first = series_.add(occurrence(kStart));
  const auto second = series_.add(occurrence(kStart + 1000));
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->create);
  EXPECT_EQ(second->key, first->key);
  EXPECT_EQ(second->body, parse_json(R"({"series": {"count": 2,
                           "lastObservedTime": "2026-01-01T00:00:01.000000Z"}})")
                              .value());
  EXPECT_EQ(integer_at(second->whole, {"series", "count"}), 2);
  EXPECT_EQ(text_at(second->whole, {"note"}), "no room");
  for (int i = 2; i < 100; ++i) EXPECT_FALSE(series_.add(occurrence(kStart + i * 1000))) << i;
  EXPECT_TRUE(series_.due(kStart + 2 * kMinute).empty());
}

TEST_F(EventSeriesTest, ASeriesThatEndsIsWrittenOnceMore) {
  for (int i = 0; i < 5; ++i) (void)series_.add(occurrence(kStart + i));
  EXPECT_TRUE(series_.due(kStart + 5 * kMinute).empty());
  const auto last = series_.due(kStart + 7 * kMinute);
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(count(last[0]), 5);
  EXPECT_TRUE(series_.due(kStart + 100 * kMinute).empty());
  EXPECT_TRUE(series_.add(occurrence(kStart + 101 * kMinute))->create) << "a new one begins";
}

TEST_F(EventSeriesTest, ALongSeriesIsRefreshedEveryHalfHour) {
  std::vector<std::int64_t> counts;
  for (std::int64_t minute = 0; minute <= 95; ++minute) {
    (void)series_.add(occurrence(kStart + minute * kMinute));
    for (const auto& write : series_.due(kStart + minute * kMinute)) counts.push_back(count(write));
  }
  EXPECT_THAT(counts, testing::ElementsAre(32, 62, 92));
}

TEST_F(EventSeriesTest, ADifferentEventIsSeparate) {
  const auto first = series_.add(occurrence(kStart));
  const auto other_note = series_.add(occurrence(kStart, "no card"));
  Occurrence other = occurrence(kStart);
  other.about.uid = "uid-2";
  const auto other_object = series_.add(other);
  EXPECT_TRUE(first->create && other_note->create && other_object->create);
  EXPECT_NE(first->key.name, other_note->key.name);
  EXPECT_NE(other_note->key.name, other_object->key.name);
}

TEST_F(EventSeriesTest, TextsKeepTheLimitsOfTheApi) {
  Occurrence long_one = occurrence(kStart);
  long_one.note.clear();
  for (int i = 0; i < 600; ++i) long_one.note += "ä";
  long_one.reason = std::string(200, 'R');
  long_one.about.key.name = std::string(253, 'n');
  const auto write = series_.add(long_one);
  const std::string note = text_at(write->body, {"note"});
  EXPECT_LE(note.size(), kMaxNote);
  EXPECT_TRUE(note.ends_with("ä...")) << note;
  EXPECT_EQ(text_at(write->body, {"reason"}).size(), kMaxReason);
  EXPECT_EQ(write->key.name.size(), 253U);
}

TEST_F(EventSeriesTest, MemoryIsBounded) {
  for (std::size_t i = 0; i < kMaxSeries + 1; ++i) {
    (void)series_.add(occurrence(kStart, std::to_string(i)));
  }
  EXPECT_TRUE(series_.add(occurrence(kStart, std::to_string(kMaxSeries)))->create);
  EXPECT_FALSE(series_.add(occurrence(kStart, "0"))->create);
}

}  // namespace
}  // namespace fettle::kube
