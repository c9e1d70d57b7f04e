// Events of a Study that changes, resumes, is deleted and comes back.
#include "cli/serve/feeds/study_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/json.h"
#include "cli/report/page.h"
#include "cli/testing/test_studies.h"

namespace fettle::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Event {
  std::string name;
  std::string id;
  Json data;
};

std::vector<Event> parse(const std::string& text) {
  std::vector<Event> events;
  Event event;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("id: ")) event.id = line.substr(4);
    if (line.starts_with("event: ")) event.name = line.substr(7);
    if (line.starts_with("data: ")) event.data = parse_json(line.substr(6)).value();
    if (line.empty()) events.push_back(std::exchange(event, {}));
  }
  return events;
}

// A reader of a feed, as a page is.
struct Page {
  std::optional<FeedPosition> position;
  std::vector<Event> read(const StudyFeed& feed) { return parse(feed.events_since(position)); }
};

std::vector<std::string> names_in(const Event& event) {
  std::vector<std::string> names;
  const Json* const rows = event.data.find("trials");
  if (rows == nullptr) return names;
  for (const Json& row : rows->as_array()) names.push_back(row.find("name")->as_string());
  return names;
}

class StudyFeedTest : public testing::Test {
 protected:
  StudyFeedTest() : view_(view_in_the_middle()) {
    view_.study.metadata.uid = "one";
    view_.study.metadata.resource_version = "1";
    for (api::TrialPtr& trial : view_.trials) {
      api::Trial made = *trial;
      made.metadata.resource_version = "1";
      trial = std::make_shared<const api::Trial>(std::move(made));
    }
    feed_.see(view_);
  }

  // The trial reports another value.
  void report(std::size_t trial, double accuracy) {
    api::Trial made = *view_.trials.at(trial);
    made.metadata.resource_version = std::to_string(++version_);
    made.status.report.emplace().step = 5;
    made.status.report->metrics["accuracy"] = accuracy;
    view_.trials[trial] = std::make_shared<const api::Trial>(std::move(made));
    feed_.see(view_);
  }

  int version_ = 1;
  RunView view_;
  StudyFeed feed_{100};
  Page page_;
};

TEST_F(StudyFeedTest, ANewPageGetsTheDocumentOfTheReport) {
  const auto events = page_.read(feed_);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].name, "document");
  EXPECT_EQ(events[0].id, page_.position->text());
  EXPECT_EQ(*events[0].data.find("key"), Json("one"));
  const Json report = page_data(view_);
  EXPECT_EQ(*events[0].data.find("study"), *report.find("study"));
  EXPECT_EQ(*events[0].data.find("volumes"), *report.find("volumes"));
  EXPECT_EQ(*events[0].data.find("trials"), *report.find("trials"));
  EXPECT_EQ(events[0].data.find("insights")->as_array().size(), 1U);
  EXPECT_THAT(page_.read(feed_), IsEmpty());
}

TEST_F(StudyFeedTest, AChangeHasTheRowsThatChangedAndTheHeader) {
  page_.read(feed_);
  report(3, 0.5);
  report(3, 0.75);
  const auto events = page_.read(feed_);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].name, "change");
  EXPECT_THAT(names_in(events[0]), ElementsAre("digits-3"));
  EXPECT_EQ(events[0].data.find("trials")->as_array()[0].find("values")->as_array()[0], Json(0.75));
  EXPECT_NE(events[0].data.find("study"), nullptr);
}

TEST_F(StudyFeedTest, WhatIsSeenAgainUnchangedIsNoEvent) {
  page_.read(feed_);
  view_.now_ms += kTimesEveryMs - 1;
  feed_.see(view_);
  EXPECT_THAT(page_.read(feed_), IsEmpty());
}

TEST_F(StudyFeedTest, TimesOfRunningTrialsPassInLargeSteps) {
  page_.read(feed_);
  view_.now_ms += kTimesEveryMs;
  feed_.see(view_);
  const auto events = page_.read(feed_);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_THAT(names_in(events[0]), ElementsAre("digits-3", "digits-4"));
}

TEST_F(StudyFeedTest, AnInterruptedStudyIsSaid) {
  page_.read(feed_);
  view_.interrupted = true;
  feed_.see(view_);
  const auto events = page_.read(feed_);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(*events[0].data.find("study")->find("state"), Json("interrupted"));
  view_.interrupted = false;  // resumed
  feed_.see(view_);
  EXPECT_EQ(*page_.read(feed_).at(0).data.find("study")->find("state"), Json("running"));
}

TEST_F(StudyFeedTest, APageThatWasAwayGetsWhatItMissed) {
  page_.read(feed_);
  const FeedPosition before = *page_.position;
  for (int i = 0; i < 50; ++i) report(3 + i % 2, 0.5 + 0.001 * i);
  Page back{FeedPosition::parse(before.text())};
  const auto events = back.read(feed_);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].name, "change");
  EXPECT_THAT(names_in(events[0]), ElementsAre("digits-3", "digits-4"));
}

TEST_F(StudyFeedTest, AnIdOfAnotherServerGetsADocument) {
  for (const FeedPosition known : {FeedPosition{99, 3}, {100, 1'000'000}, {5'000'000, 1}}) {
    Page page{known};
    EXPECT_EQ(page.read(feed_).at(0).name, "document");
  }
}

TEST_F(StudyFeedTest, EstimatesComeApart) {
  page_.read(feed_);
  EXPECT_TRUE(feed_.wants_estimates());
  Estimates estimates = estimate(view_);
  estimates.expectations[3] = {0.9, 0.1, 0.75, 20};
  feed_.see(estimates);
  EXPECT_FALSE(feed_.wants_estimates());
  const auto events = page_.read(feed_);
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[0].name, "insight");
  EXPECT_EQ(events[0].id, "") << "a page that loses the second event would miss it";
  EXPECT_EQ(*events[0].data.find("insights"), *page_data(view_).find("insights"));
  EXPECT_THAT(names_in(events[1]), ElementsAre("digits-3"));
  EXPECT_EQ(*events[1].data.find("trials")->as_array()[0].find("expected")->find("mean"),
            Json(0.9));
}

TEST_F(StudyFeedTest, EstimatesOfAnotherStudyAreForgotten) {
  Estimates estimates = estimate(view_);
  estimates.uid = "another";
  feed_.see(estimates);
  EXPECT_TRUE(feed_.wants_estimates());
}

TEST_F(StudyFeedTest, ADeletedStudyIsGoneAndOneThatComesBackBeginsAnew) {
  page_.read(feed_);
  feed_.see(not_found("no study 'digits' in .fettle"));
  feed_.see(not_found("no study 'digits' in .fettle"));
  auto events = page_.read(feed_);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].name, "gone");
  EXPECT_THAT(page_.read(feed_), IsEmpty());
  Page late;
  EXPECT_EQ(late.read(feed_).at(0).name, "gone");
  view_.study.metadata.uid = "two";
  feed_.see(view_);
  EXPECT_EQ(page_.read(feed_).at(0).name, "reset");
  EXPECT_EQ(Page().read(feed_).at(0).name, "document");
}

TEST_F(StudyFeedTest, AnotherStudyOfTheNameResetsThePage) {
  page_.read(feed_);
  view_.study.metadata.uid = "two";
  feed_.see(view_);
  EXPECT_EQ(page_.read(feed_).at(0).name, "reset");
}

TEST_F(StudyFeedTest, TroubleIsSaidAndEnds) {
  page_.read(feed_);
  feed_.see(Error{ErrorCode::kForbidden, "trials is forbidden"});
  auto events = page_.read(feed_);
  EXPECT_EQ(events.at(0).name, "trouble");
  EXPECT_EQ(*events.at(0).data.find("code"), Json("forbidden"));
  EXPECT_EQ(*events.at(0).data.find("message"), Json("trials is forbidden"));
  EXPECT_EQ(Page().read(feed_).at(0).name, "trouble") << "a new page hears of it, too";
  feed_.see(view_);
  events = page_.read(feed_);
  EXPECT_EQ(events.at(0).name, "trouble");
  EXPECT_EQ(*events.at(0).data.find("message"), Json(""));
}

TEST_F(StudyFeedTest, TroubleFromTheBeginningIsFollowedByADocument) {
  StudyFeed feed(100);
  EXPECT_THAT(page_.read(feed), IsEmpty());
  feed.see(Error{ErrorCode::kForbidden, "studies is forbidden"});
  EXPECT_EQ(page_.read(feed).at(0).name, "trouble");
  EXPECT_THAT(page_.read(feed), IsEmpty());
  feed.see(view_);
  EXPECT_EQ(page_.read(feed).at(0).name, "reset");
  EXPECT_EQ(Page().read(feed).at(0).name, "document");
}

TEST_F(StudyFeedTest, ALargeStudyComesInPieces) {
  const api::Trial pattern = *view_.trials[0];
  view_.trials.clear();
  for (int i = 0; i < 400; ++i) {
    api::Trial trial = pattern;
    trial.metadata.name = "digits-" + std::to_string(i);
    trial.metadata.resource_version = "1";
    trial.spec.index = i;
    trial.spec.parameters.set("text", std::string(10'000, 'x'));
    view_.trials.push_back(std::make_shared<const api::Trial>(std::move(trial)));
  }
  StudyFeed feed(100);
  feed.see(view_);
  std::vector<std::string> names;
  std::size_t pieces = 0;
  for (;; ++pieces) {
    const std::string text = feed.events_since(page_.position);
    if (text.empty()) break;
    EXPECT_LT(text.size(), 2 * kMostRowBytes);
    for (const Event& event : parse(text)) {
      EXPECT_EQ(event.name, pieces == 0 ? "document" : "change");
      for (std::string& name : names_in(event)) names.push_back(std::move(name));
    }
  }
  EXPECT_GE(pieces, 2U);
  ASSERT_THAT(names, SizeIs(400));
  EXPECT_EQ(names.front(), "digits-0");
  EXPECT_EQ(names.back(), "digits-399");
}

// A change a second, seen by nobody: what a page gets after a day is no more than the Study.
TEST_F(StudyFeedTest, ADayOfChangesTakesNoMoreThanTheStudy) {
  page_.read(feed_);
  const FeedPosition morning = *page_.position;
  const std::size_t whole = [&] {
    std::optional<FeedPosition> nobody;
    return feed_.events_since(nobody).size();
  }();
  for (int second = 0; second < 24 * 3600; ++second) {
    view_.now_ms += 1000;
    report(3 + static_cast<std::size_t>(second % 2), 0.5 + 1e-6 * second);
  }
  Page evening{morning};
  const std::string missed = feed_.events_since(evening.position);
  EXPECT_LE(missed.size(), whole + 200);
  EXPECT_THAT(names_in(parse(missed).at(0)), ElementsAre("digits-3", "digits-4"));
}

TEST_F(StudyFeedTest, NamesOfProgramsStayOnOneLineOfTheStream) {
  view_.study.spec.objectives[0].metric = "a\nevent: gone\n\n</script>";
  view_.study.metadata.resource_version = "2";
  feed_.see(view_);
  const auto events = page_.read(feed_);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].name, "document");
}

}  // namespace
}  // namespace fettle::cli
