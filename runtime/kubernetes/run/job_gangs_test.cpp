// How JobRuns handles Jobs of several workers: the test fills the caches and moves the clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "api/study/study_json.h"
#include "api/yaml/study_file.h"
#include "core/trial/trial_plan.h"
#include "kube/objects/json_path.h"
#include "kube/objects/json_write.h"
#include "runtime/kubernetes/job/gang.h"
#include "runtime/kubernetes/pod/labels.h"
#include "runtime/kubernetes/pod/service.h"
#include "runtime/kubernetes/testing/fake_cluster.h"
#include "runtime/kubernetes/testing/hand_clock.h"

namespace fettle::kubernetes {
namespace {

using kube::text_at;
using testing::HasSubstr;

class JobGangsTest : public testing::Test {
 protected:
  static constexpr std::int64_t kTimeout = 60'000;

  JobGangsTest() {
    study_ = api::load_study_text(template_study(1), "test").studies.at(0);
    study_.metadata.uid = "study-uid";
    study_.metadata.ns = "team";
    study_.spec.trial.workers = {4, 4};
    cluster_.start_operator();
    runs_.emplace(client_, jobs_, pods_, cluster_.manager->store(), clock_,
                  JobOptions{"image", {}, kTimeout});
  }

  api::Trial trial(int index) {
    api::Trial out;
    out.metadata.name = "digits-" + std::to_string(index);
    out.metadata.ns = "team";
    out.metadata.uid = "trial-uid-" + std::to_string(index);
    out.spec.study = "digits";
    out.spec.parameters = Json::object({{"rate", 0.5}});
    out.spec.workers = 4;
    return out;
  }
  // Makes the operator see the Study.
  void store_study() {
    cluster_.server.set(kube::kStudies, api::write_study(study_));
    ASSERT_TRUE(FakeCluster::eventually([&] {
      return cluster_.manager->store().get_study({"team", "digits"}).ok();
    }));
    study_ = cluster_.manager->store().get_study({"team", "digits"}).value();
  }
  static std::string job_name(int index) { return "digits-" + std::to_string(index) + "-r0"; }
  Json job(int index) { return cluster_.server.get(kube::kJobs, {"team", job_name(index)}); }
  std::string state(int index) {
    return text_at(job(index), {"metadata", "annotations", kGangAnnotation});
  }
  bool is_suspended(int index) { return kube::boolean_at(job(index), {"spec", "suspend"}); }
  void start(int index) { ASSERT_TRUE(runs_->start(study_, trial(index), 0).ok()); }
  std::vector<core::Run> observe(int index) { return runs_->observe(trial(index)).value(); }
  // Fills the cache as the watch of Jobs would.
  void see(int index) {
    const Json now = job(index);
    if (!now.is_null()) return jobs_.put(kube::read_job(now).value());
    const kube::ObjectKey key{"team", job_name(index)};
    if (const auto known = jobs_.get(key)) jobs_.erase(key, known->metadata.uid, "");
  }
  void place_pod(int index, int rank, const std::string& phase, const std::string& node) {
    kube::Pod pod;
    pod.metadata.name = job_name(index) + "-" + std::to_string(rank);
    pod.metadata.ns = "team";
    pod.metadata.uid = "pod-" + pod.metadata.name;
    pod.metadata.created_ms = clock_.now_ms();
    pod.metadata.resource_version = std::to_string(++version_);
    pod.metadata.labels = {{"batch.kubernetes.io/job-completion-index", std::to_string(rank)},
                           {kTrialLabel, "digits-" + std::to_string(index)}};
    pod.owner = kube::Owner{"Job", job_name(index), text_at(job(index), {"metadata", "uid"})};
    pod.phase = phase;
    pod.node = node;
    pods_.put(pod);
    // A Job that is deleted in the foreground waits for its pods.
    api::Metadata owner;
    owner.name = pod.owner->name;
    owner.uid = pod.owner->uid;
    cluster_.server.set(
        kube::kPods,
        Json::object({{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata", Json::object({{"name", pod.metadata.name},
                                                 {"namespace", "team"},
                                                 {"ownerReferences",
                                                  kube::owner_references(kube::kJobs, owner)}})}}));
  }
  void place_pods(int index, int count) {
    for (int rank = 0; rank < count; ++rank) place_pod(index, rank, "Running", "node");
  }
  // Requires a pod that has a node.
  void run_container(int index, int rank) {
    kube::Pod pod = *pods_.get({"team", job_name(index) + "-" + std::to_string(rank)});
    pod.metadata.resource_version = std::to_string(++version_);
    kube::Container& trainer = pod.containers.emplace_back();
    trainer.name = "trainer";
    trainer.running = true;
    trainer.started_ms = clock_.now_ms();
    pods_.put(pod);
  }
  // Starts a gang whose four workers all get a node. Returns the trial with its run recorded as
  // running.
  api::Trial start_whole(int index) {
    start(index);
    (void)observe(index);
    place_pods(index, 4);
    (void)observe(index);
    api::Trial running = trial(index);
    running.status.runs.emplace_back().running_ms = clock_.now_ms();
    return running;
  }

  FakeCluster cluster_;
  HandClock clock_{control::SystemClock().now_ms()};
  kube::Client client_{cluster_.server, {}};
  kube::Cache<kube::Job> jobs_;
  kube::Cache<kube::Pod> pods_;
  std::optional<JobRuns> runs_;
  api::Study study_;
  int version_ = 1'000'000;
};

TEST_F(JobGangsTest, OneGathersAfterTheOther) {
  start(0);
  start(1);
  EXPECT_TRUE(is_suspended(0) && is_suspended(1));
  (void)observe(1);  // whichever is observed first
  EXPECT_FALSE(is_suspended(0));
  EXPECT_TRUE(is_suspended(1));
  place_pods(0, 3);
  (void)observe(0);
  (void)observe(1);
  EXPECT_TRUE(is_suspended(1)) << "the first still misses a worker";
  place_pods(0, 4);
  (void)observe(0);
  EXPECT_EQ(state(0), "gathered");
  EXPECT_FALSE(is_suspended(1));
}

TEST_F(JobGangsTest, OneThatDoesNotGatherGivesItsNodesBackAndIsStartedAgainLater) {
  start(0);
  (void)observe(0);
  place_pods(0, 3);
  start(1);
  clock_.pass(kTimeout);
  const core::Run run = observe(0).at(0);
  EXPECT_EQ(state(0), "returned");
  EXPECT_FALSE(text_at(job(0), {"metadata", "deletionTimestamp"}).empty());
  EXPECT_EQ(run.state, core::RunState::kPending) << "no run is lost by that";
  EXPECT_FALSE(is_suspended(1)) << "it is the other one's turn";
  for (int rank = 0; rank < 3; ++rank) {
    pods_.erase({"team", job_name(0) + "-" + std::to_string(rank)},
                "pod-" + job_name(0) + "-" + std::to_string(rank), "");
  }
  cluster_.server.collect_garbage();
  see(0);
  ASSERT_EQ(observe(0).size(), 1u);
  EXPECT_EQ(observe(0)[0].state, core::RunState::kPending);
  EXPECT_THAT(observe(0)[0].reason, HasSubstr("3 of 4 workers have a node after 1m"));
  clock_.pass(kTimeout);
  EXPECT_TRUE(observe(0).empty()) << "so it is started again";
  start(0);
  EXPECT_EQ(state(0), "waiting");
}

// A worker is lost before the run has begun, and its replacement finds no node.
TEST_F(JobGangsTest, OneThatLosesAWorkerBeforeItRunsGivesItsNodesBackToo) {
  start(0);
  (void)observe(0);
  for (int rank = 0; rank < 4; ++rank) place_pod(0, rank, "Pending", "node");
  (void)observe(0);
  ASSERT_EQ(state(0), "gathered");
  clock_.pass(kTimeout);
  place_pod(0, 3, "Pending", "");
  clock_.pass(kTimeout - 1'000);
  (void)observe(0);
  EXPECT_EQ(state(0), "gathered");
  clock_.pass(1'000);
  EXPECT_EQ(observe(0).at(0).state, core::RunState::kPending) << "no run is lost by that";
  EXPECT_EQ(state(0), "returned");
  EXPECT_FALSE(text_at(job(0), {"metadata", "deletionTimestamp"}).empty());
  cluster_.server.remove(kube::kJobs, {"team", job_name(0)});
  see(0);
  EXPECT_THAT(observe(0).at(0).reason, HasSubstr("lost its node before all had started"));
}

// Without a node there is nothing to give back, and an autoscaler may be adding nodes.
TEST_F(JobGangsTest, OneThatHoldsNoNodeKeepsItsPlace) {
  start(0);
  (void)observe(0);
  for (int rank = 0; rank < 4; ++rank) place_pod(0, rank, "Pending", "node");
  (void)observe(0);
  for (int rank = 0; rank < 4; ++rank) place_pod(0, rank, "Pending", "");
  clock_.pass(kTimeout);
  (void)observe(0);
  EXPECT_EQ(state(0), "gathered");
}

TEST_F(JobGangsTest, ACrashBetweenTheDecisionAndTheDeletionLosesNeither) {
  start(0);
  (void)observe(0);
  place_pods(0, 3);
  clock_.pass(kTimeout);
  kube::Fault lost;
  lost.kind = kube::Fault::Kind::kAnswer;
  lost.matches = [](const kube::HttpRequest& request) { return request.method == "DELETE"; };
  lost.answer.status = 403;
  cluster_.server.inject(lost);
  const core::Run seen = observe(0).at(0);
  EXPECT_EQ(seen.state, core::RunState::kPending);
  EXPECT_THAT(seen.reason, HasSubstr("HTTP 403")) << "what is seen is told all the same";
  EXPECT_EQ(state(0), "returned");
  EXPECT_EQ(observe(0).at(0).state, core::RunState::kPending);
  EXPECT_FALSE(text_at(job(0), {"metadata", "deletionTimestamp"}).empty());
}

// Whichever writes fail, and however, the state is reported and the trial can be stopped.
TEST_F(JobGangsTest, NoWriteThatFailsHidesWhatIsSeen) {
  study_.spec.trial.gang = "volcano";
  study_.spec.trial.checkpoints.emplace().size = 1e9;
  cluster_.server.set(kube::kStudies, api::write_study(study_));
  kube::Fault fault;
  fault.kind = kube::Fault::Kind::kAnswer;
  fault.every = 1;
  fault.matches = [](const kube::HttpRequest& request) { return request.method != "GET"; };
  int index = 0;
  const auto expect_seen = [&](const std::string& stage) {
    clock_.pass(61'000);  // so that all ensured objects are asked for again
    cluster_.server.inject(fault);
    const auto seen = runs_->observe(trial(index));
    ASSERT_TRUE(seen.ok()) << stage << " " << fault.answer.status;
    ASSERT_EQ(seen->size(), 1u) << stage;
    EXPECT_EQ(seen->at(0).state, core::RunState::kPending) << stage;
    api::Trial stopped = trial(index);
    stopped.spec.stop.emplace().reason = "EarlyStopped";
    const core::TrialPlan plan = core::plan_trial({study_, stopped, *seen}, clock_.now_ms());
    EXPECT_TRUE(std::ranges::any_of(plan.actions, [](const core::TrialAction& action) {
      return std::holds_alternative<core::StopRun>(action);
    })) << stage;
    cluster_.server.clear_faults();
  };
  for (const int status : {400, 403, 404, 409, 422, 500, 503}) {
    fault.answer.status = status;
    start(++index);
    expect_seen("waiting");
    EXPECT_TRUE(is_suspended(index)) << status << ": its PodGroup is missing";
    (void)observe(index);
    EXPECT_FALSE(is_suspended(index)) << status << ": it is made once it can be";
    for (int rank = 0; rank < 4; ++rank) place_pod(index, rank, "Pending", "node");
    expect_seen("open");
    (void)observe(index);
    ASSERT_EQ(state(index), "gathered");
    place_pod(index, 3, "Pending", "");
    expect_seen("lost a worker");
  }
}

// Without its group it could hold its GPUs and never meet.
TEST_F(JobGangsTest, OneWithoutItsPodGroupIsNotOpenedAndHoldsUpNoOther) {
  study_.spec.trial.gang = "volcano";
  cluster_.refuses = [](const kube::Admission& write) { return write.resource == "podgroups"; };
  cluster_.admit = Error{ErrorCode::kForbidden, "exceeded quota: groups"};
  start(0);
  EXPECT_THAT(observe(0).at(0).reason, HasSubstr("exceeded quota: groups"));
  EXPECT_TRUE(is_suspended(0));
  cluster_.refuses = nullptr;
  (void)observe(0);
  EXPECT_FALSE(is_suspended(0));
}

// Without the Service its workers could not meet.
TEST_F(JobGangsTest, OneWhoseServiceIsRefusedIsNotOpenedAndSaysWhy) {
  store_study();
  start(0);
  cluster_.server.remove(kube::kServices, {"team", service_of(study_)});
  cluster_.refuses = [](const kube::Admission& write) { return write.resource == "services"; };
  cluster_.admit = Error{ErrorCode::kForbidden, "exceeded quota: services"};
  clock_.pass(61'000);  // so that the Service is asked for again
  EXPECT_THAT(observe(0).at(0).reason, HasSubstr("exceeded quota: services"));
  EXPECT_TRUE(is_suspended(0));
  cluster_.refuses = {};
  EXPECT_THAT(observe(0).at(0).reason, testing::Not(HasSubstr("exceeded quota")));
  (void)observe(0);
  EXPECT_FALSE(is_suspended(0));
}

// No object is asked for again while the workers train.
TEST_F(JobGangsTest, ARunningOneIsLeftAloneWhateverBecomesOfItsHelpers) {
  study_.spec.trial.gang = "volcano";
  study_.spec.trial.checkpoints.emplace().size = 1e9;
  store_study();  // otherwise nothing would be asked for anyway
  const api::Trial running = start_whole(0);
  for (int rank = 0; rank < 4; ++rank) run_container(0, rank);
  clock_.pass(3'600'000);
  const int before = cluster_.server.writes();
  EXPECT_EQ(runs_->observe(running).value().at(0).state, core::RunState::kRunning);
  EXPECT_EQ(cluster_.server.writes(), before);
  place_pod(0, 3, "Pending", "");
  (void)runs_->observe(running);
  EXPECT_GT(cluster_.server.writes(), before) << "a worker that starts again finds the others";
}

TEST_F(JobGangsTest, OneThatIsToStopIsNeverOpened) {
  start(0);
  api::Trial stopped = trial(0);
  stopped.status.runs.emplace_back().stopping = api::Outcome::kStopped;
  ASSERT_TRUE(runs_->stop(stopped, 0).ok());
  EXPECT_EQ(state(0), "stopped");
  EXPECT_EQ(runs_->observe(stopped).value().at(0).outcome, api::Outcome::kStopped);
  EXPECT_TRUE(is_suspended(0));
  start(1);
  (void)observe(1);
  EXPECT_FALSE(is_suspended(1)) << "nor does it hold up others";
}

TEST_F(JobGangsTest, ADecisionOnAnOldViewChangesNothing) {
  start(0);
  Json touched =
      Json::object({{"metadata", Json::object({{"labels", Json::object({{"a", "b"}})}})}});
  cluster_.server.merge(kube::kJobs, {"team", job_name(0)}, touched);
  (void)observe(0);
  EXPECT_TRUE(is_suspended(0));
  see(0);
  (void)observe(0);
  EXPECT_FALSE(is_suspended(0));
}

TEST_F(JobGangsTest, WorkersThatAreTakenAwayBeforeItBeganAreNotWaitedFor) {
  study_.spec.trial.workers = {1, 4};
  start(0);
  (void)observe(0);
  place_pods(0, 2);
  ASSERT_TRUE(runs_->resize(trial(0), 0, 2).ok());
  EXPECT_EQ(state(0), "returned") << "its pods would wait for four";
  EXPECT_EQ(observe(0).at(0).state, core::RunState::kPending);
}

TEST_F(JobGangsTest, ARunningOneIsResizedAndDoesNotGrowIntoWorkersThatStillLeave) {
  const api::Trial running = start_whole(0);
  ASSERT_TRUE(runs_->resize(running, 0, 2).ok());
  EXPECT_EQ(kube::integer_at(job(0), {"spec", "completions"}), 2);
  ASSERT_TRUE(runs_->resize(running, 0, 4).ok());
  EXPECT_EQ(kube::integer_at(job(0), {"spec", "completions"}), 2) << "2 and 3 still live";
  for (const int rank : {2, 3}) place_pod(0, rank, "Failed", "node");
  ASSERT_TRUE(runs_->resize(running, 0, 4).ok());
  EXPECT_EQ(kube::integer_at(job(0), {"spec", "completions"}), 4);
}

TEST_F(JobGangsTest, OneThatIsAtItsLastStepDoesNotGrow) {
  const api::Trial running = start_whole(0);
  ASSERT_TRUE(runs_->resize(running, 0, 2).ok());
  for (const int rank : {2, 3}) place_pod(0, rank, "Failed", "node");
  place_pod(0, 1, "Succeeded", "node");
  ASSERT_TRUE(runs_->resize(running, 0, 4).ok());
  EXPECT_EQ(kube::integer_at(job(0), {"spec", "completions"}), 2) << "they would find no peers";
}

TEST_F(JobGangsTest, ARemovedRunIsSeenUntilItsLastWorkerIsGone) {
  start(0);
  place_pod(0, 0, "Failed", "node");
  place_pod(0, 1, "Running", "node");
  ASSERT_TRUE(runs_->remove(trial(0), 0).ok());
  ASSERT_TRUE(runs_->remove(trial(0), 0).ok());
  ASSERT_EQ(observe(0).size(), 1u);
  EXPECT_TRUE(observe(0)[0].terminating);
  place_pod(0, 1, "Failed", "node");
  EXPECT_TRUE(observe(0).empty());
}

}  // namespace
}  // namespace fettle::kubernetes
