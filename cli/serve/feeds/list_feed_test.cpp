// The list of Studies: its rows, its events, and which Studies are read again.
#include "cli/serve/feeds/list_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "cli/serve/answers.h"
#include "cli/testing/test_studies.h"

namespace fettle::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Studies of a test, each with its stamp.
class FakeStudies final : public StudySource {
 public:
  std::string place() const override { return "in <b>nowhere</b>"; }
  Result<std::vector<std::string>> names() override {
    if (forbidden) return Error{ErrorCode::kForbidden, "studies is forbidden"};
    std::vector<std::string> all;
    for (const auto& [name, stamp] : stamps) all.push_back(name);
    return all;
  }
  std::string stamp(const std::string& study) override { return stamps[study]; }
  Result<std::string> newest() override { return absent(); }
  Result<SeenStudy> read(const std::string& study, Detail) override {
    reads.push_back(study);
    if (study == broken) return io_error("it is broken");
    SeenStudy seen{view_in_the_middle(), {}, 0};
    seen.view.study.metadata.name = study;
    return seen;
  }
  Status print_log(const std::string&, std::optional<std::int64_t>, bool,
                   const LogPrinter&) override {
    return absent();
  }
  Status follow_log(const std::string&, const LogPrinter&, std::stop_token) override {
    return absent();
  }
  Status scale(const std::string&, std::int64_t) override { return absent(); }
  Result<std::string> stop(const std::string&, bool) override { return absent(); }
  Status remove(const std::string&) override { return absent(); }

  std::map<std::string, std::string> stamps;
  std::vector<std::string> reads;
  std::string broken;
  bool forbidden = false;

 private:
  static Error absent() { return not_found("there is none"); }
};

class ListTest : public testing::Test {
 protected:
  void update() {
    source_.reads.clear();
    const Status updated = list_.update(source_);
    if (updated.ok()) {
      feed_.see(list_.rows());
    } else {
      feed_.see(updated.error());
    }
  }
  std::string told() { return feed_.events_since(position_); }

  FakeStudies source_;
  StudyList list_{{}};
  ListFeed feed_{100, "in <b>nowhere</b>"};
  std::optional<FeedPosition> position_;
};

TEST_F(ListTest, ARowTellsOfAStudy) {
  const Json row = list_row(view_in_the_middle());
  EXPECT_EQ(*row.find("name"), Json("digits"));
  EXPECT_EQ(*row.find("state"), Json("running"));
  EXPECT_EQ(*row.find("objective")->find("metric"), Json("accuracy"));
  EXPECT_EQ(*row.find("best")->find("trial"), Json("digits-0"));
  EXPECT_EQ(*row.find("best")->find("value"), Json(0.9012));
  EXPECT_EQ(*row.find("results"), Json(1));
  EXPECT_EQ(row.find("steps")->as_array().at(0).as_array().at(2), Json(0.9012));
  EXPECT_EQ(*row.find("trials")->find("running"), Json(2));
}

TEST_F(ListTest, AnEmptyPlaceIsADocument) {
  update();
  EXPECT_THAT(told(), HasSubstr("event: document"));
  EXPECT_THAT(told(), IsEmpty());
  source_.stamps["late"] = "1";
  update();
  EXPECT_THAT(told(), testing::AllOf(HasSubstr("event: change"), HasSubstr("\"late\"")));
}

TEST_F(ListTest, ReadsOnlyWhatHasChanged) {
  source_.stamps = {{"a", "1"}, {"b", "1"}};
  update();
  EXPECT_THAT(source_.reads, ElementsAre("a", "b"));
  told();
  update();
  EXPECT_THAT(source_.reads, IsEmpty());
  EXPECT_THAT(told(), IsEmpty());
  source_.stamps["b"] = "2";
  update();
  EXPECT_THAT(source_.reads, ElementsAre("b"));
}

TEST_F(ListTest, ADeletedStudyLeavesTheList) {
  source_.stamps = {{"a", "1"}, {"b", "1"}};
  update();
  told();
  source_.stamps.erase("a");
  update();
  const std::string events = told();
  EXPECT_THAT(events, HasSubstr("event: document"));
  EXPECT_THAT(events, Not(HasSubstr("\"name\":\"a\"")));
}

TEST_F(ListTest, AStudyThatCannotBeReadIsARowThatSaysWhy) {
  source_.stamps = {{"a", "1"}, {"b", "1"}};
  source_.broken = "a";
  update();
  EXPECT_THAT(told(), HasSubstr(R"({"name":"a","error":"it is broken"})"));
}

TEST_F(ListTest, ManyStudiesAreReadInSteps) {
  for (int i = 0; i < 50; ++i) source_.stamps["s" + std::to_string(i)] = "1";
  update();
  EXPECT_EQ(source_.reads.size(), StudyList::kMostReads);
  EXPECT_TRUE(list_.is_behind());
  update();
  update();
  EXPECT_FALSE(list_.is_behind());
  EXPECT_EQ(list_.rows().size(), 50U);
}

TEST_F(ListTest, OnlyTheNamedStudiesAreListed) {
  StudyList list({"b"});
  source_.stamps = {{"a", "1"}, {"b", "1"}};
  ASSERT_TRUE(list.update(source_).ok());
  EXPECT_THAT(source_.reads, ElementsAre("b"));
}

TEST_F(ListTest, AForbiddenListIsASentence) {
  source_.forbidden = true;
  update();
  EXPECT_THAT(told(), testing::AllOf(HasSubstr("event: trouble"), HasSubstr("\"forbidden\"")));
  source_.forbidden = false;
  update();
  EXPECT_THAT(told(), HasSubstr("event: document"));
}

TEST_F(ListTest, MetricsAreThoseOfTheRows) {
  source_.stamps = {{"a", "1"}, {"b", "1"}};
  source_.broken = "b";
  update();
  const std::string text = metrics_text(list_.rows());
  EXPECT_THAT(text, HasSubstr("# TYPE fettle_study_state gauge\n"));
  EXPECT_THAT(text, HasSubstr("fettle_study_state{study=\"a\",state=\"running\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("fettle_study_trials{study=\"a\",trials=\"running\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("fettle_study_best{study=\"a\",metric=\"accuracy\"} 0.9012\n"));
  EXPECT_THAT(text, Not(HasSubstr("study=\"b\"")));
}

TEST_F(ListTest, LabelsOfMetricsAreEscaped) {
  Json row = list_row(view_in_the_middle());
  row.find("objective")->set("metric", "a\"b\\c\nd");
  EXPECT_THAT(metrics_text({{"digits", {"1", row}}}), HasSubstr(R"(metric="a\"b\\c\nd"} )"));
}

}  // namespace
}  // namespace fettle::cli
