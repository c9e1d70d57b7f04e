// The requests of the store to the API server, and when it makes them.
#include "runtime/kubernetes/store/kube_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/names.h"
#include "kube/testing/fake_api_server.h"
#include "kube/testing/fake_objects.h"
#include "runtime/kubernetes/testing/hand_clock.h"

namespace fettle::kubernetes {
namespace {

class KubeStoreTest : public testing::Test {
 protected:
  KubeStoreTest() {
    server_.set(kube::kStudies, parse_json(R"({"apiVersion": "fettle.dev/v1alpha1",
        "kind": "Study", "metadata": {"name": "digits", "namespace": "team", "uid": "u1"},
        "spec": {"objectives": [{"metric": "loss", "direction": "Minimize"}],
                 "parameters": [{"name": "x", "type": "Double", "min": 0, "max": 1}],
                 "budget": {"trials": 1},
                 "trial": {"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}}})")
                                    .value());
    studies_.put(read_study_entry(server_.get(kube::kStudies, {"team", "digits"})).value());
  }

  api::Trial create_trial() {
    api::Trial trial;
    trial.metadata.ns = "team";
    trial.metadata.name = "digits-0";
    trial.spec.study = "digits";
    trial.spec.parameters = Json::object({{"x", 0.5}});
    trial.metadata.labels = {{core::kStudyLabel, "digits"}, {core::kStudyUidLabel, "u1"}};
    return store_.create_trial(trial).value();
  }
  std::ptrdiff_t reads() const {
    return std::ranges::count(server_.requests(),
                              "GET /apis/fettle.dev/v1alpha1/namespaces/team/trials/digits-0");
  }

  kube::FakeApiServer server_;
  kube::Client client_{server_, {}};
  HandClock clock_;
  kube::Cache<StudyEntry> studies_;
  kube::Cache<TrialEntry> trials_;
  KubeStore store_{client_, studies_, trials_, clock_, {}};
};

TEST_F(KubeStoreTest, ATrialCreatedAMomentAgoIsConfirmedWithoutAsking) {
  const api::Trial created = create_trial();
  EXPECT_TRUE(store_.confirm(created).ok());
  EXPECT_EQ(reads(), 0);
}

TEST_F(KubeStoreTest, LaterItIsRead) {
  const api::Trial created = create_trial();
  clock_.pass(1'001);
  EXPECT_TRUE(store_.confirm(created).ok());
  EXPECT_EQ(reads(), 1);
}

TEST_F(KubeStoreTest, AnotherVersionIsReadAndIsAConflict) {
  api::Trial created = create_trial();
  created.metadata.resource_version = "7000";
  const Status confirmed = store_.confirm(created);
  ASSERT_FALSE(confirmed.ok());
  EXPECT_EQ(confirmed.error().code, ErrorCode::kConflict);
  EXPECT_EQ(reads(), 1);
}

// The answer of an API server whose definitions lack `field`, at `path` below status.
kube::Fault lacks(const std::string& field, std::string path = "") {
  if (path.empty()) path = field;
  kube::Fault fault;
  fault.kind = kube::Fault::Kind::kAnswer;
  fault.every = 1;
  fault.matches = [field](const kube::HttpRequest& request) {
    return request.body.find('"' + field + '"') != std::string::npos;
  };
  fault.answer = kube::status_response(500, "InternalError",
                                       "failed to create typed patch object (team/digits; "
                                       "fettle.dev/v1alpha1, Kind=Study): .status." +
                                           path + ": field not declared in schema");
  return fault;
}

TEST_F(KubeStoreTest, AFieldThatOlderDefinitionsLackIsLeftOutForAMinute) {
  server_.inject(lacks("hypervolume"));
  api::Study study = store_.get_study({"team", "digits"}).value();
  study.status.hypervolume = 0.5;
  study.status.trials.created = 3;
  const api::Study written = store_.update_study_status(study).value();
  EXPECT_EQ(written.status.trials.created, 3);
  EXPECT_FALSE(written.status.hypervolume);

  server_.clear_faults();
  study.metadata = written.metadata;
  EXPECT_FALSE(store_.update_study_status(study)->status.hypervolume) << "it is not asked again";
  clock_.pass(60'000);
  study.metadata = store_.get_study({"team", "digits"})->metadata;
  EXPECT_EQ(store_.update_study_status(study)->status.hypervolume, 0.5);
}

TEST_F(KubeStoreTest, ANestedFieldThatOlderDefinitionsLackIsLeftOutOfEachItem) {
  server_.inject(lacks("message", "runs[run=0].message"));
  api::Trial trial = create_trial();
  for (const std::int64_t run : {0, 1}) {
    trial.status.runs.push_back({});
    trial.status.runs.back().run = run;
    trial.status.runs.back().message = "evicted";
  }
  const Result<api::Trial> written = store_.update_trial_status(trial);
  ASSERT_TRUE(written.ok()) << written.error().message;
  ASSERT_EQ(written->status.runs.size(), 2u);
  EXPECT_EQ(written->status.runs[1].run, 1);
  EXPECT_EQ(written->status.runs[0].message + written->status.runs[1].message, "");
}

TEST_F(KubeStoreTest, ARefusalOfAFieldThatWasNotSentIsARefusal) {
  server_.inject(lacks("conditions", "runs[0].resizes"));
  api::Study study = store_.get_study({"team", "digits"}).value();
  study.status.conditions.emplace_back();
  study.status.conditions.back().type = "Running";
  const auto written = store_.update_study_status(study);
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("not declared"), std::string::npos);
}

// The operator applied the report of this image, so an apply without it would delete it.
TEST_F(KubeStoreTest, TheReportOfATrialOutlivesItsStudy) {
  api::Trial trial = create_trial();
  trial.status.report.emplace();
  trial.status.report->step = 3;
  trial.status.report->metrics["loss"] = 0.25;
  trial = store_.update_trial_status(trial).value();
  const auto study = studies_.get({"team", "digits"});
  studies_.erase({"team", "digits"}, study->metadata.uid, "90000");
  trial.status.phase = api::TrialPhase::kStopped;
  const Result<api::Trial> ended = store_.update_trial_status(trial);
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  const Json stored = server_.get(kube::kTrials, {"team", "digits-0"});
  EXPECT_EQ(stored.find("status")->find("phase")->as_string(), "Stopped");
  ASSERT_NE(stored.find("status")->find("report"), nullptr);
  EXPECT_EQ(stored.find("status")->find("report")->find("step")->as_integer(), 3);
}

}  // namespace
}  // namespace fettle::kubernetes
