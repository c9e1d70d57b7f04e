// The files of a run whose supervisor was killed.
#include "runtime/local/run/recorded_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "api/trial/trial_file.h"
#include "base/file.h"
#include "core/names.h"

namespace fettle::local {
namespace {

using testing::HasSubstr;

class RecordedRun : public testing::Test {
 protected:
  RecordedRun() {
    std::string name = (std::filesystem::temp_directory_path() / "fettle-test-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    layout_ = make_layout(root_, "s");
    trial_.metadata.name = "s-0";
    trial_.metadata.uid = "trial-uid";
    trial_.metadata.labels[core::kStudyUidLabel] = "study-uid";
    EXPECT_TRUE(make_directories(layout_.run_directory("s-0", 0)).ok());
    api::TrialFile file;
    file.study = "s";
    file.study_uid = "study-uid";
    file.trial = "s-0";
    const std::string text = api::write_trial_file(file).dump();
    EXPECT_TRUE(write_file(layout_.trial_file("s-0", 0), text).ok());
  }
  ~RecordedRun() override { std::filesystem::remove_all(root_); }

  core::Run recall(const std::string& log, const api::MetricsFilter& filter = {}) {
    EXPECT_TRUE(write_file(layout_.log_file("s-0", 0), log).ok());
    runtime::MetricLinesOptions options;
    options.filter = filter;
    return recall_run(layout_, trial_, 0, [&](const api::Trial&) { return std::optional(options); })
        .value();
  }

  std::string root_;
  Layout layout_;
  api::Trial trial_;
};

TEST_F(RecordedRun, OfAKilledSupervisorsRunTheLogIsReadToItsLastWholeLine) {
  const core::Run run = recall(
      "starting\n{\"step\": 9, \"loss\": 0.5}\n{\"step\": 10, \"loss\": 0.25}\n{\"step\": 11, "
      "\"lo");
  EXPECT_EQ(run.outcome, api::Outcome::kDisrupted);
  EXPECT_THAT(run.reason, HasSubstr("its supervisor was killed"));
  ASSERT_TRUE(run.report);
  EXPECT_EQ(run.report->step, 10);
  EXPECT_EQ(run.report->metrics.at("loss"), 0.25);
}

// Lines of standard output and standard error are in one file: counted steps may be wrong.
TEST_F(RecordedRun, StepsThatAreCountedAreNotTrusted) {
  EXPECT_FALSE(recall("{\"loss\": 0.5}\n{\"loss\": 0.25}\n").report);
}

TEST_F(RecordedRun, TheLogOfSeveralWorkersIsNotTrusted) {
  trial_.spec.workers = 2;
  EXPECT_FALSE(recall("{\"step\": 1, \"loss\": 0.5}\n").report);
}

TEST_F(RecordedRun, TheLogOfAnotherStudysTrialIsNotTrusted) {
  trial_.metadata.labels[core::kStudyUidLabel] = "another";
  EXPECT_FALSE(recall("{\"step\": 1, \"loss\": 0.5}\n").report);
}

}  // namespace
}  // namespace fettle::local
