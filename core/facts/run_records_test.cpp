// Run records are pruned, but no count is lost.
#include "core/facts/run_records.h"

#include <gtest/gtest.h>

namespace fettle::core {
namespace {

using api::Outcome;

// Runs of ten seconds with these outcomes, one after the other.
api::TrialStatus ledger_of(const std::vector<Outcome>& outcomes) {
  api::TrialStatus status;
  std::int64_t now_ms = 1'000;
  for (const Outcome outcome : outcomes) {
    api::RunRecord& record = append_run(status, {}, now_ms);
    record.running_ms = now_ms;
    now_ms += 10'000;
    record.ended_ms = now_ms;
    record.outcome = outcome;
  }
  return status;
}

TEST(RunRecords, PruningForgetsNoFailureAndNoTime) {
  std::vector<Outcome> outcomes(50, Outcome::kStopped);
  for (const std::size_t failed : {0u, 7u, 49u}) outcomes[failed] = Outcome::kTimedOut;
  const api::TrialStatus status = ledger_of(outcomes);
  EXPECT_EQ(status.runs.size(), kMaxRunRecords);
  EXPECT_EQ(status.runs.back().run, 49);
  EXPECT_EQ(failures_of(status), 3);
  EXPECT_DOUBLE_EQ(status.runs.back().earlier_seconds, 490);
}

TEST(RunRecords, OldResizesAreForgottenButNotTheirSeconds) {
  api::TrialStatus status;
  api::RunRecord& record = append_run(status, {}, 0);
  record.running_ms = 1'000;
  double expected = 0;  // a second with 1 worker, one with 2, with 3, with 1 ...
  for (std::int64_t i = 0; i < 200; ++i) {
    const std::int64_t workers = i % 3 + 1;
    set_workers(record, workers, 1'000 + i * 1'000);
    EXPECT_EQ(workers_now(record), workers);
    EXPECT_DOUBLE_EQ(record.earlier_seconds + worker_seconds(record, 1'000 + i * 1'000), expected);
    expected += static_cast<double>(workers);
  }
  EXPECT_EQ(record.resizes.size(), api::kMaxResizes);
  record.outcome = Outcome::kDisrupted;
  record.ended_ms = 201'000;
  EXPECT_DOUBLE_EQ(append_run(status, {}, 300'000).earlier_seconds, expected);
}

TEST(RunRecords, TheSameNumberOfWorkersIsNoNews) {
  api::TrialStatus status;
  api::RunRecord& record = append_run(status, {}, 0);
  set_workers(record, 1, 1'000);
  EXPECT_TRUE(record.resizes.empty());
}

TEST(RunRecords, DisruptionsAndStopsAreFree) {
  EXPECT_EQ(failures_of(ledger_of({Outcome::kDisrupted, Outcome::kStopped})), 0);
  EXPECT_EQ(failures_of(ledger_of({Outcome::kHung, Outcome::kOutOfMemory, Outcome::kFailed})), 3);
}

TEST(RunRecords, ProgressEndsARowOfDisruptions) {
  api::TrialStatus status = ledger_of(std::vector<Outcome>(5, Outcome::kDisrupted));
  EXPECT_EQ(disruptions_without_progress(status), 5);
  for (std::size_t i = 2; i < 5; ++i) status.runs[i].last_step = 3;  // the third got further
  EXPECT_EQ(disruptions_without_progress(status), 2);
}

TEST(RunRecords, BackoffDoublesUpToItsLimit) {
  EXPECT_EQ(backoff_ms(1), 1'000);
  EXPECT_EQ(backoff_ms(2), 2'000);
  EXPECT_EQ(backoff_ms(5), 16'000);
  EXPECT_EQ(backoff_ms(1'000'000), kMaxBackoffMs);
}

TEST(RunRecords, LongMessagesKeepTheirEndAndTheirCharactersWhole) {
  std::string text;
  for (int i = 0; i < 1'000; ++i) text += "\u00fc";
  text += " the error";
  const std::string cut = truncate_message(text);
  EXPECT_LE(cut.size(), kMaxMessageBytes);
  EXPECT_EQ(cut.substr(cut.size() - 10), " the error");
  EXPECT_EQ(cut.substr(0, 5), "...\u00fc");
}

// If checkpoints are lost with their pod, each run begins at 0 again, and may never get as far as
// the first run.
TEST(RunRecords, ARunThatStartsAgainGetsFurtherByStepsOfItsOwn) {
  api::TrialStatus status;
  std::int64_t now_ms = 1'000;
  const auto disrupt = [&](bool resumes, std::int64_t step) {
    api::RunRecord& record = append_run(status, {}, now_ms);
    now_ms += 10'000;
    if (step != 0) {
      api::Report& report = status.report.emplace();
      report.step = step;
      report.at_ms = now_ms;
    }
    record.last_step = last_step_of(status, record, resumes);
    record.outcome = Outcome::kDisrupted;
  };
  disrupt(/*resumes=*/false, 50);
  for (int i = 0; i < 12; ++i) disrupt(/*resumes=*/false, 20);
  EXPECT_EQ(disruptions_without_progress(status, /*resumes=*/false), 0);
  EXPECT_GE(disruptions_without_progress(status, /*resumes=*/true), kMaxDisruptionsWithoutProgress)
      << "with checkpoints that would be a trial that does not get further";
  for (int i = 0; i < 3; ++i) disrupt(/*resumes=*/false, 0);
  EXPECT_EQ(disruptions_without_progress(status, /*resumes=*/false), 3)
      << "the report that is still there is that of an earlier run";
}

}  // namespace
}  // namespace fettle::core
