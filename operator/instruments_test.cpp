// Counts of trials and of GPU-hours, as a scrape shows them.
#include "operator/instruments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fettle::op {
namespace {

using testing::HasSubstr;
using testing::Not;

class InstrumentsTest : public testing::Test {
 protected:
  static kubernetes::TrialEntry entry_of(const api::Trial& trial) {
    kubernetes::TrialEntry entry;
    entry.metadata = trial.metadata;
    entry.trial = std::make_shared<const api::Trial>(trial);
    return entry;
  }
  void put_study(const std::string& name, const std::string& uid, double gpu_hours) {
    kubernetes::StudyEntry entry;
    api::Study study;
    study.metadata.name = name;
    study.metadata.ns = "team";
    study.metadata.uid = uid;
    study.metadata.resource_version = std::to_string(++version_);
    study.status.gpu_hours = gpu_hours;
    entry.metadata = study.metadata;
    entry.study = std::make_shared<const api::Study>(study);
    studies_.put(std::move(entry));
  }

  kube::Cache<kubernetes::StudyEntry> studies_;
  kube::Cache<kubernetes::TrialEntry> trials_;
  Log log_{LogFormat::kText, LogLevel::kError};
  Instruments instruments_{{studies_, trials_, [] { return 0; }, [] { return 0; }, [] { return 0; },
                            [] { return true; }, [] { return 0; },
                            [] {
                              return kubernetes::GangLine{7, 42'000};
                            }},
                           log_};
  int version_ = 0;
};

TEST_F(InstrumentsTest, TheStartOfATrialAndTheEndsOfItsRunsAreCountedOnce) {
  api::Trial trial;
  trial.metadata.ns = "team";
  trial.metadata.uid = "uid";
  trial.metadata.created_ms = 100'000;
  const kubernetes::TrialEntry created = entry_of(trial);
  trial.status.runs.emplace_back().running_ms = 145'000;
  const kubernetes::TrialEntry running = entry_of(trial);
  trial.status.runs.back().outcome = api::Outcome::kDisrupted;
  trial.status.runs.emplace_back().run = 1;
  const kubernetes::TrialEntry disrupted = entry_of(trial);
  instruments_.on_trial(nullptr, &created);
  instruments_.on_trial(&created, &running);
  instruments_.on_trial(&running, &running);
  instruments_.on_trial(&running, &disrupted);
  instruments_.on_trial(&disrupted, nullptr);
  instruments_.on_trial(nullptr, &disrupted);  // listed again
  const std::string text = instruments_.text();
  EXPECT_THAT(text, HasSubstr("fettle_trial_start_seconds_count{namespace=\"team\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("fettle_trial_start_seconds_sum{namespace=\"team\"} 45\n"));
  EXPECT_THAT(text, HasSubstr("fettle_runs_total{namespace=\"team\",outcome=\"Disrupted\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("fettle_gang_line 7\n"));
  EXPECT_THAT(text, HasSubstr("fettle_gang_line_oldest_seconds 42\n"));
}

// Accounting uses a counter's growth: the Study may be deleted.
TEST_F(InstrumentsTest, GpuHoursOfDeletedStudiesStayInTheCounter) {
  put_study("old", "a", 5);
  EXPECT_THAT(instruments_.text(), Not(HasSubstr("fettle_gpu_hours_total{")))
      << "they were counted by the replica before";
  put_study("old", "a", 6);
  put_study("new", "b", 2);
  EXPECT_THAT(instruments_.text(), HasSubstr("fettle_gpu_hours_total{namespace=\"team\"} 3\n"));
  studies_.erase({"team", "old"}, "a", "");
  const std::string text = instruments_.text();
  EXPECT_THAT(text, Not(HasSubstr("study=\"old\"")));
  EXPECT_THAT(text, HasSubstr("fettle_gpu_hours_total{namespace=\"team\"} 3\n"));
}

TEST_F(InstrumentsTest, StudiesThatAreLeftOutAreCounted) {
  for (std::size_t i = 0; i < kMaxSeries + 3; ++i) {
    put_study("s" + std::to_string(i), std::to_string(i), 1);
  }
  EXPECT_THAT(instruments_.text(), HasSubstr("fettle_series_left_out 3\n"));
  EXPECT_THAT(instruments_.text(), HasSubstr("fettle_series_left_out 3\n")) << "not 6";
}

}  // namespace
}  // namespace fettle::op
