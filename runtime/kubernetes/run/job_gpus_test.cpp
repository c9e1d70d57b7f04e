// How JobRuns handles GPU profiles that change, and claims.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/yaml/study_file.h"
#include "base/file.h"
#include "kube/objects/json_path.h"
#include "runtime/kubernetes/gpu/testing/test_profiles.h"
#include "runtime/kubernetes/testing/fake_cluster.h"
#include "runtime/kubernetes/testing/hand_clock.h"

namespace fettle::kubernetes {
namespace {

using testing::HasSubstr;

constexpr double kGib = 1024.0 * 1024 * 1024;

class JobGpusTest : public testing::Test {
 protected:
  JobGpusTest() : path_(testing::TempDir() + "fettle-job-gpus.json") {
    study_ = api::load_study_text(template_study(1), "test").studies.at(0);
    study_.metadata.uid = "01234567-study-uid";
    study_.spec.trial.gpu = api::Gpu{{}, {}, 20 * kGib};
    cluster_.start_operator();
  }

  void write(const std::vector<std::string>& profiles) {
    const Json list = api::write_gpu_profiles(test_profiles(profiles));
    ASSERT_TRUE(write_file(path_, list.dump()).ok());
  }
  void start_runs() {
    JobOptions options{"image"};
    options.gpu_catalogue = std::make_shared<GpuCatalogue>(path_);
    runs_.emplace(client_, jobs_, pods_, cluster_.manager->store(), clock_, options);
  }
  api::Trial trial(int index) {
    api::Trial out;
    out.metadata.name = "digits-" + std::to_string(index);
    out.metadata.ns = "team";
    out.metadata.uid = "trial-uid-" + std::to_string(index);
    out.spec.study = "digits";
    out.spec.parameters = Json::object({{"rate", 0.5}});
    return out;
  }
  std::size_t templates() { return cluster_.count(kube::kResourceClaimTemplates); }

  const std::string path_;
  FakeCluster cluster_;
  HandClock clock_{control::SystemClock().now_ms()};
  kube::Client client_{cluster_.server, {}};
  kube::Cache<kube::Job> jobs_;
  kube::Cache<kube::Pod> pods_;
  std::optional<JobRuns> runs_;
  api::Study study_;
};

TEST_F(JobGpusTest, AStudyHasOneClaimTemplateHoweverManyTrials) {
  write({"dra-memory"});
  start_runs();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(runs_->start(study_, trial(i), 0).ok());
  EXPECT_EQ(templates(), 1U);
  const Json made = cluster_.server.list(kube::kResourceClaimTemplates).at(0);
  EXPECT_EQ(
      made.find("metadata")->find("ownerReferences")->as_array().at(0).find("uid")->as_string(),
      "01234567-study-uid");
}

TEST_F(JobGpusTest, AClaimTemplateThatSomebodyDeletedIsMadeAgainWhileARunWaits) {
  write({"dra-memory"});
  start_runs();
  std::string yaml = template_study(1);
  yaml.replace(yaml.find("  trial:"), 8, "  trial:\n    gpu: {memory: 20Gi}");
  cluster_.apply(yaml, study_.metadata.uid);
  ASSERT_TRUE(cluster_.run_until([&] {
    return cluster_.manager->store().get_study({"team", "digits"}).ok();
  }));
  ASSERT_TRUE(runs_->start(study_, trial(0), 0).ok());
  const Json made = cluster_.server.list(kube::kResourceClaimTemplates).at(0);
  cluster_.server.remove(kube::kResourceClaimTemplates, kube::key_of(made));
  clock_.pass(61'000);  // until the claim is no longer assumed to exist
  ASSERT_TRUE(runs_->observe(trial(0)).ok());
  EXPECT_EQ(templates(), 1U);
}

TEST_F(JobGpusTest, TheCheckTriesTheClaimWithoutMakingIt) {
  write({"dra-memory"});
  start_runs();
  ASSERT_TRUE(runs_->check(study_).ok());
  EXPECT_EQ(templates(), 0U);
  cluster_.refuses = [](const kube::Admission& write) {
    return write.resource == "resourceclaimtemplates";
  };
  cluster_.admit =
      Error{ErrorCode::kForbidden, "cannot create resource \"resourceclaimtemplates\""};
  const Status refused = runs_->check(study_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable) << "an administrator may mend it";
}

TEST_F(JobGpusTest, WhatIsTakenAwayInTheMiddleOfAStudyIsNoFailure) {
  write({"hami-memory"});
  start_runs();
  ASSERT_TRUE(runs_->check(study_).ok());
  ASSERT_TRUE(runs_->start(study_, trial(0), 0).ok());
  EXPECT_EQ(runs_->capacity(study_).gpu->profile, "hami-memory");
  write({"whole"});
  clock_.pass(GpuCatalogue::kAgainMs);
  const Status refused = runs_->start(study_, trial(1), 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("no GPU profile of this cluster offers"));
  EXPECT_EQ(runs_->capacity(study_).gpu, nullptr);
  EXPECT_EQ(runs_->check(study_).error().code, ErrorCode::kInvalid) << "a new Study fails at once";
}

TEST_F(JobGpusTest, AWrongListConcernsStudiesWithGpusAlone) {
  ASSERT_TRUE(write_file(path_, R"([{"name": "mps"}])").ok());
  start_runs();
  EXPECT_EQ(runs_->check(study_).error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(runs_->check(study_).error().message, HasSubstr("GPU profile mps: sharing"));
  study_.spec.trial.gpu.reset();
  EXPECT_TRUE(runs_->check(study_).ok());
}

}  // namespace
}  // namespace fettle::kubernetes
