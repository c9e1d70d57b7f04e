// Jobs in a queue of Kueue: how they are stopped, resized and moved, and how Kueue's messages show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "core/names.h"
#include "kube/objects/json_path.h"
#include "runtime/kubernetes/job/job_builder.h"
#include "runtime/kubernetes/job/queue.h"
#include "runtime/kubernetes/testing/fake_cluster.h"
#include "runtime/kubernetes/testing/job_runs_fixture.h"

namespace fettle::kubernetes {
namespace {

using kube::integer_at;
using kube::text_at;
using testing::EndsWith;
using testing::HasSubstr;

// Kueue's Workload of the Job.
void put_workload(kube::FakeApiServer& server, Json::Array conditions, bool active) {
  const Json job = server.get(kube::kJobs, {"team", kJob});
  const Json labels = Json::object({{kWorkloadJobLabel, text_at(job, {"metadata", "uid"})}});
  server.set(
      kWorkloads,
      Json::object(
          {{"apiVersion", "kueue.x-k8s.io/v1beta2"},
           {"kind", "Workload"},
           {"metadata", Json::object({{"name", "w"}, {"namespace", "team"}, {"labels", labels}})},
           {"spec", Json::object({{"active", active}})},
           {"status", Json::object({{"conditions", Json(std::move(conditions))}})}}));
}

class JobQueuesTest : public HandRunsTest {
 protected:
  JobQueuesTest() {
    study_.spec.trial.queue = "vision";
    study_.spec.trial.queue_priority = "low";
  }

  void resume() { change_job(Json::object({{"spec", Json::object({{"suspend", false}})}})); }
  void set_workload(const char* type, const char* status, const char* message, bool active = true) {
    put_workload(server_,
                 {Json::object({{"type", type}, {"status", status}, {"message", message}})},
                 active);
  }
};

// Kueue frees the quota of a deleted Job although its pods still end.
TEST_F(JobQueuesTest, ARunningJobIsStoppedByADeadlineSoThatItKeepsItsQuota) {
  ASSERT_TRUE(start().ok());
  resume();
  ASSERT_TRUE(runs_.stop(trial_, 0).ok());
  ASSERT_TRUE(runs_.stop(trial_, 0).ok());
  EXPECT_EQ(integer_at(job(), {"spec", "activeDeadlineSeconds"}), 1);
  EXPECT_EQ(requests("PATCH"), 1u);
  EXPECT_EQ(requests("DELETE"), 0u);
  // Acts as the Job controller when the pods have ended.
  const Json failed =
      Json::object({{"type", "Failed"}, {"status", "True"}, {"reason", "DeadlineExceeded"}});
  change_job(Json::object({{"status", Json::object({{"conditions", Json(Json::Array{failed})}})}}));
  trial_.status.runs.emplace_back().stopping = api::Outcome::kStopped;
  EXPECT_EQ(observe().outcome, api::Outcome::kStopped);
  ASSERT_TRUE(runs_.remove(trial_, 0).ok());
  EXPECT_TRUE(job().is_null());
}

TEST_F(JobQueuesTest, ASuspendedJobIsStoppedByDeletion) {
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(runs_.stop(trial_, 0).ok());
  EXPECT_EQ(requests("PATCH"), 0u);
  EXPECT_EQ(requests("DELETE"), 1u);
}

TEST_F(JobQueuesTest, AJobThatIsSuspendedAgainIsReducedThoughItHasRun) {
  study_.spec.trial.workers = {1, 2};
  trial_.spec.workers = 1;
  ASSERT_TRUE(start().ok());
  change_job(Json::object({{"spec", Json::object({{"completions", 2}, {"parallelism", 2}})}}));
  trial_.status.runs.emplace_back().pod_uid = "pod-uid";
  ASSERT_TRUE(runs_.resize(trial_, 0, 1).ok());
  EXPECT_EQ(integer_at(job(), {"spec", "completions"}), 1);
  EXPECT_EQ(integer_at(job(), {"spec", "parallelism"}), 1);
}

// The environment of its pods would make them wait for missing workers.
TEST_F(JobQueuesTest, AJobThatWasMadeForMoreWorkersIsMadeAgain) {
  study_.spec.trial.workers = {1, 2};
  trial_.spec.workers = 2;
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(runs_.resize(trial_, 0, 1).ok());
  EXPECT_EQ(requests("DELETE"), 1u);
  EXPECT_TRUE(runs_.observe(trial_).value().empty());
}

TEST_F(JobQueuesTest, AStudyGrowsOnlyWhereKueueHasPutItsGate) {
  study_.spec.trial.workers = {1, 2, api::WorkersSizing::kAuto};
  ASSERT_TRUE(runs_.capacity(study_).may_grow) << "nothing is known yet";
  ASSERT_TRUE(start().ok());
  EXPECT_FALSE(runs_.capacity(study_).may_grow);
  const Json gate = Json::object({{"name", kElasticJobGate}});
  const Json pod = Json::object({{"schedulingGates", Json(Json::Array{gate})}});
  change_job(Json::object({{"spec", Json::object({{"template", Json::object({{"spec", pod}})}})}}));
  EXPECT_TRUE(runs_.capacity(study_).may_grow);
}

TEST_F(JobQueuesTest, KueuesWordsAreSaidAndAskedForAtMostEveryTenSeconds) {
  ASSERT_TRUE(start().ok());
  EXPECT_EQ(observe_after(0).reason, "");
  EXPECT_EQ(requests("GET /apis/kueue"), 0u) << "most Jobs are admitted at once";
  set_workload("QuotaReserved", "False", "insufficient quota, 2 more needed");
  EXPECT_THAT(observe_after(60'000).reason, HasSubstr("insufficient quota, 2 more needed"));
  EXPECT_EQ(requests("GET /apis/kueue"), 1u);
  set_workload("QuotaReserved", "False", "insufficient quota, 1 more needed");
  EXPECT_THAT(observe_after(9'999).reason, HasSubstr("2 more needed"));
  EXPECT_EQ(requests("GET /apis/kueue"), 1u);
  EXPECT_THAT(observe_after(1).reason, HasSubstr("2 more needed")) << "amounts alone are no news";
  EXPECT_EQ(requests("GET /apis/kueue"), 2u);
}

TEST_F(JobQueuesTest, WithoutTheRightTheCommandIsNamedAndKueueSeldomAsked) {
  ASSERT_TRUE(start().ok());
  kube::Fault forbidden;
  forbidden.kind = kube::Fault::Kind::kAnswer;
  forbidden.matches = [](const kube::HttpRequest& request) {
    return request.target.find("kueue.x-k8s.io") != std::string::npos;
  };
  forbidden.every = 1;
  forbidden.answer = {403, R"({"kind":"Status","code":403,"reason":"Forbidden"})", {}, {}};
  server_.inject(forbidden);
  EXPECT_THAT(observe_after(60'000).reason, HasSubstr("kubectl describe workloads.kueue.x-k8s.io"));
  EXPECT_THAT(observe_after(60'000).reason, HasSubstr("without WorkloadPriorityClass low"));
  EXPECT_EQ(requests("GET /apis/kueue"), 1u);
}

TEST_F(JobQueuesTest, ADeactivatedWorkloadBlocksUntilItIsActiveAgain) {
  ASSERT_TRUE(start().ok());
  set_workload("Evicted", "True", "exceeded the PodsReady timeout", /*active=*/false);
  EXPECT_THAT(observe_after(60'000).reason, HasSubstr("Kueue has deactivated its Workload"));
  trial_.status.runs.emplace_back().message = "its image cannot be pulled: no such image";
  const Status blocked = runs_.check_progress(trial_);
  ASSERT_FALSE(blocked.ok());
  EXPECT_THAT(blocked.error().message, HasSubstr("exceeded the PodsReady timeout"));
  EXPECT_THAT(blocked.error().message,
              EndsWith("; before that: its image cannot be pulled: no such image"));
  set_workload("QuotaReserved", "False", "waiting");
  EXPECT_EQ(observe_after(10'000).state, core::RunState::kPending);
  EXPECT_TRUE(runs_.check_progress(trial_).ok());
}

TEST_F(JobQueuesTest, AWorkloadThatIsFinishedBeforeItsJobEndsTheRunAtTheSecondLook) {
  ASSERT_TRUE(start().ok());
  set_workload("Finished", "True", "conflict for annotations");
  EXPECT_EQ(observe_after(60'000).state, core::RunState::kPending);
  const core::Run run = observe_after(10'000);
  EXPECT_EQ(run.outcome, api::Outcome::kDisrupted);
  EXPECT_THAT(run.reason, HasSubstr("conflict for annotations"));
}

TEST_F(JobQueuesTest, AWaitingJobMovesToTheQueueThatItsStudyNamesNow) {
  ASSERT_TRUE(start().ok());
  study_.spec.trial.queue = "other";
  study_.spec.trial.queue_priority = "high";
  StudyEntry entry;
  entry.metadata = study_.metadata;
  entry.study = std::make_shared<api::Study>(study_);
  entry.readability.reported = true;
  studies_.put(entry);
  (void)observe();
  (void)observe();
  EXPECT_EQ(text_at(job(), {"metadata", "labels", kQueueLabel}), "other");
  EXPECT_EQ(text_at(job(), {"metadata", "labels", kQueuePriorityLabel}), "high");
  EXPECT_EQ(requests("PATCH"), 1u);
}

// Tests with a whole operator.
class StudyInAQueueTest : public testing::Test {
 protected:
  StudyInAQueueTest() {
    std::string study = template_study(1);
    const std::string trial = "  trial:\n";
    study.insert(study.find(trial) + trial.size(), "    queue: vision\n");
    cluster_.apply(study);
    cluster_.start_operator();
  }

  void admit() {
    cluster_.server.merge(kube::kJobs, {"team", kJob},
                          Json::object({{"spec", Json::object({{"suspend", false}})}}));
  }
  bool has_job() { return !cluster_.server.get(kube::kJobs, {"team", kJob}).is_null(); }

  FakeCluster cluster_;
};

TEST_F(StudyInAQueueTest, IsBlockedWhileItsWorkloadIsInactive) {
  ASSERT_TRUE(cluster_.run_until([&] { return has_job(); }));
  put_workload(cluster_.server, {}, /*active=*/false);
  ASSERT_TRUE(cluster_.run_until([&] { return cluster_.is_true("Blocked"); }));
  EXPECT_THAT(cluster_.message_of("Blocked"), HasSubstr("Kueue has deactivated its Workload"));
  put_workload(cluster_.server, {}, /*active=*/true);
  ASSERT_TRUE(cluster_.run_until([&] { return !cluster_.is_true("Blocked"); }));
  admit();
  ASSERT_TRUE(cluster_.run_until_ended());
  EXPECT_TRUE(cluster_.is_true("Succeeded"));
}

TEST_F(StudyInAQueueTest, PausesARunningTrialByItsDeadline) {
  cluster_.script = [](const std::string&) {
    PodScript script;
    script.stays = true;
    return script;
  };
  ASSERT_TRUE(cluster_.run_until([&] { return has_job(); }));
  admit();
  const auto phase = [&] { return text_at(cluster_.trial(0), {"status", "phase"}); };
  ASSERT_TRUE(cluster_.run_until([&] { return phase() == "Running"; }));
  cluster_.server.merge(kube::kStudies, {"team", "digits"},
                        Json::object({{"spec", Json::object({{"suspend", true}})}}));
  std::int64_t deadline = 0;
  ASSERT_TRUE(cluster_.run_until([&] {
    deadline = integer_at(cluster_.server.get(kube::kJobs, {"team", kJob}),
                          {"spec", "activeDeadlineSeconds"});
    return deadline != 0 || !has_job();
  }));
  EXPECT_EQ(deadline, 1);
  ASSERT_TRUE(cluster_.run_until([&] { return phase() == "Paused" && !has_job(); }));
}

}  // namespace
}  // namespace fettle::kubernetes
