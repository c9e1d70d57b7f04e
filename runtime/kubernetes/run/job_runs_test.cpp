// Single calls of JobRuns, and how it takes the API server's answers.
#include "runtime/kubernetes/run/job_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "api/fields/timestamp.h"
#include "api/study/pod_template.h"
#include "api/study/study_json.h"
#include "api/yaml/study_file.h"
#include "core/names.h"
#include "kube/objects/json_path.h"
#include "kube/objects/json_write.h"
#include "runtime/kubernetes/job/ownership.h"
#include "runtime/kubernetes/job/run_of_job.h"
#include "runtime/kubernetes/pod/labels.h"
#include "runtime/kubernetes/testing/fake_cluster.h"
#include "runtime/kubernetes/testing/hand_clock.h"
#include "runtime/kubernetes/testing/job_runs_fixture.h"

namespace fettle::kubernetes {
namespace {

using kube::text_at;
using testing::HasSubstr;

// A pod of `job` that succeeded with these last words.
Json pod_of(const Json& job, const std::string& last_words) {
  const Json terminated = Json::object({{"exitCode", 0}, {"message", last_words}});
  const Json container = Json::object(
      {{"name", api::kTrialContainer}, {"state", Json::object({{"terminated", terminated}})}});
  api::Metadata owner;
  owner.name = kJob;
  owner.uid = text_at(job, {"metadata", "uid"});
  const Json labels = Json::object({{kTrialLabel, "digits-0"}, {kRunLabel, "0"}});
  const Json owners = kube::owner_references(kube::kJobs, owner);
  return Json::object(
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata", Json::object({{"name", "digits-0-r0-0-x"},
                                  {"namespace", "team"},
                                  {"labels", labels},
                                  {"ownerReferences", owners}})},
       {"status", Json::object({{"phase", "Succeeded"},
                                {"containerStatuses", Json(Json::Array{container})}})}});
}

Json running_pod(const Json& job, std::int64_t started_ms) {
  Json pod = pod_of(job, "");
  const Json running = Json::object({{"startedAt", api::format_timestamp(started_ms)}});
  const Json container = Json::object(
      {{"name", api::kTrialContainer}, {"state", Json::object({{"running", running}})}});
  pod.set("status", Json::object({{"phase", "Running"},
                                  {"containerStatuses", Json(Json::Array{container})}}));
  return pod;
}

TEST_F(JobRunsTest, StartedTwiceItIsOneJob) {
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(start().ok());
  EXPECT_EQ(requests("POST"), 1u) << "what was written is known at once";
  EXPECT_EQ(observe().state, core::RunState::kPending);
  cluster_.start_operator();  // another one, which has just started
  ASSERT_TRUE(start().ok());
  EXPECT_EQ(cluster_.count(kube::kJobs), 1u);
}

TEST_F(JobRunsTest, AForeignJobIsNotAdopted) {
  cluster_.server.set(
      kube::kJobs,
      Json::object({{"apiVersion", "batch/v1"},
                    {"kind", "Job"},
                    {"metadata", Json::object({{"name", kJob}, {"namespace", "team"}})}}));
  const Status started = start();
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().code, ErrorCode::kAlreadyExists);
  EXPECT_THAT(started.error().message, HasSubstr("is not Fettle's"));
  EXPECT_TRUE(runs().observe(trial_).value().empty());
}

TEST_F(JobRunsTest, StoppingSuspendsOnce) {
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(runs().stop(trial_, 0).ok());
  ASSERT_TRUE(runs().stop(trial_, 0).ok());
  EXPECT_TRUE(kube::boolean_at(job(), {"spec", "suspend"}));
  EXPECT_EQ(requests("PATCH"), 1u);
}

// Kueue would resume the Job: "Job admitted, unsuspending".
TEST_F(JobRunsTest, StoppingAJobInAQueueDeletesItWithItsPods) {
  study_.spec.trial.queue = "team";
  ASSERT_TRUE(start().ok());
  EXPECT_TRUE(kube::boolean_at(job(), {"spec", "suspend"}));
  EXPECT_EQ(text_at(job(), {"metadata", "labels", "kueue.x-k8s.io/queue-name"}), "team");
  ASSERT_TRUE(runs().stop(trial_, 0).ok());
  EXPECT_EQ(requests("PATCH"), 0u);
  EXPECT_EQ(requests("DELETE"), 1u);
}

TEST_F(JobRunsTest, ResizingChangesBothNumbersTogether) {
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(runs().resize(trial_, 0, 3).ok());
  EXPECT_EQ(kube::integer_at(job(), {"spec", "completions"}), 3);
  EXPECT_EQ(kube::integer_at(job(), {"spec", "parallelism"}), 3);
  EXPECT_EQ(observe().workers, 3);
  ASSERT_TRUE(runs().resize(trial_, 0, 3).ok());
  EXPECT_EQ(requests("PATCH"), 1u);
}

// A proxy may say so, or an API server behind a network partition.
TEST_F(JobRunsTest, AJobThatIsSaidToBeGoneIsLookedFor) {
  ASSERT_TRUE(start().ok());
  for (const int code : {404, 409}) {
    kube::Fault denied;
    denied.kind = kube::Fault::Kind::kAnswer;
    denied.matches = [](const kube::HttpRequest& request) { return request.method == "DELETE"; };
    denied.answer = kube::status_response(code, code == 404 ? "NotFound" : "Conflict", "no");
    cluster_.server.inject(denied);
    const Status removed = runs().remove(trial_, 0);
    ASSERT_FALSE(removed.ok()) << code;
    EXPECT_EQ(removed.error().code, ErrorCode::kUnavailable) << code;
    EXPECT_EQ(runs().observe(trial_)->size(), 1u) << "it is deleted by the next plan";
  }
  EXPECT_TRUE(runs().remove(trial_, 0).ok());
  EXPECT_TRUE(job().is_null());
}

TEST_F(JobRunsTest, ARemovedRunIsNotSeenAgain) {
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(runs().remove(trial_, 0).ok());
  EXPECT_TRUE(runs().observe(trial_).value().empty()) << "before the watch says so";
  EXPECT_TRUE(job().is_null());
  EXPECT_TRUE(runs().remove(trial_, 0).ok());
  EXPECT_TRUE(runs().stop(trial_, 0).ok());
}

// The watch of pods is behind that of Jobs, for example after the API server was away.
TEST_F(JobRunsTest, AnEndedJobIsReadWithPodsThatNoWatchHasShownYet) {
  kube::Client client(cluster_.server, {});
  kube::Cache<kube::Job> jobs;
  kube::Cache<kube::Pod> pods;
  JobRuns behind(client, jobs, pods, cluster_.manager->store(), cluster_.clock, {"image"});
  ASSERT_TRUE(behind.start(study_, trial_, 0).ok());
  cluster_.server.set(kube::kPods, pod_of(job(), R"({"step": 1, "loss": 0.5})"));
  Json complete = Json::object({{"type", "Complete"}, {"status", "True"}});
  const Json status = Json::object({{"conditions", Json(Json::Array{std::move(complete)})}});
  cluster_.server.merge(kube::kJobs, {"team", kJob}, Json::object({{"status", status}}));
  jobs.put(kube::read_job(job()).value());
  const core::Run run = behind.observe(trial_).value().at(0);
  EXPECT_EQ(run.state, core::RunState::kExited);
  ASSERT_TRUE(run.report);
  EXPECT_EQ(run.report->metrics.at("loss"), 0.5);
}

TEST_F(JobRunsTest, WorkersOfAllTrialsFindEachOtherThroughOneServiceOfTheStudy) {
  use_workers(2);
  ASSERT_TRUE(start().ok());
  api::Trial second = trial_;
  second.metadata.name = "digits-1";
  second.metadata.uid = "second-uid";
  ASSERT_TRUE(runs().start(study_, second, 0).ok());
  ASSERT_EQ(cluster_.count(kube::kServices), 1u);
  const Json service = cluster_.server.get(kube::kServices, {"team", "w-digits-study-ui"});
  EXPECT_EQ(text_at(kube::array_at(service, {"metadata", "ownerReferences"}).at(0), {"kind"}),
            "Study");
  EXPECT_EQ(text_at(job(), {"spec", "template", "spec", "subdomain"}), "w-digits-study-ui");
}

TEST_F(JobRunsTest, NoGangComesBeforeItsServiceWhateverRefusesIt) {
  use_workers(2);
  const struct {
    ErrorCode answered;
    bool waits;  // as a run with a reason; otherwise start() is tried again
  } cases[] = {{ErrorCode::kForbidden, true},
               {ErrorCode::kInvalid, false},
               {ErrorCode::kUnavailable, false}};
  for (const auto& c : cases) {
    cluster_.start_operator();
    refuse("services", c.answered, "not this one");
    const Status started = start();
    EXPECT_EQ(cluster_.count(kube::kJobs), 0u);
    EXPECT_EQ(started.ok(), c.waits);
    if (c.waits) {
      EXPECT_THAT(observe().reason, HasSubstr("not this one"));
    } else {
      EXPECT_EQ(started.error().code, ErrorCode::kUnavailable);
    }
  }
}

// A full quota refuses a Service or a claim even if it exists already.
TEST_F(JobRunsTest, WhatExistsIsNotMissedBecauseItsQuotaIsFull) {
  use_workers(2);
  study_.spec.trial.checkpoints.emplace().size = 1e9;
  ASSERT_TRUE(start().ok());
  cluster_.start_operator();  // another one, which does not know of them
  cluster_.refuses = [](const kube::Admission& write) { return write.resource != "jobs"; };
  cluster_.admit = Error{ErrorCode::kForbidden, "exceeded quota: full"};
  trial_.metadata.name = "digits-1";
  trial_.metadata.uid = "second-uid";
  ASSERT_TRUE(start().ok());
  EXPECT_EQ(cluster_.count(kube::kJobs), 2u);
}

TEST_F(JobRunsTest, AClaimIsMadeOnceForAStudyThatAsksForOne) {
  study_.spec.trial.checkpoints.emplace().size = 1e9;
  ASSERT_TRUE(start().ok());
  api::Trial second = trial_;
  second.metadata.name = "digits-1";
  ASSERT_TRUE(runs().start(study_, second, 0).ok());
  cluster_.start_operator();  // another one, which does not know of it
  second.metadata.name = "digits-2";
  ASSERT_TRUE(runs().start(study_, second, 0).ok());
  EXPECT_EQ(cluster_.count(kube::kClaims), 1u);
  EXPECT_EQ(cluster_.count(kube::kJobs), 3u);
}

// A claim that a user deletes under a running Study is made again for the pods that wait for it.
TEST_F(JobRunsTest, AClaimThatIsDeletedIsMadeAgainAndSaid) {
  study_.spec.trial.checkpoints.emplace().size = 1e9;
  store_study();
  ASSERT_TRUE(start().ok());
  const Json claim = cluster_.server.list(kube::kClaims).at(0);
  cluster_.server.remove(kube::kClaims, {"team", text_at(claim, {"metadata", "name"})});
  const auto is_back = [&] {
    (void)observe();
    return cluster_.count(kube::kClaims) == 1u;
  };
  EXPECT_TRUE(eventually(is_back));
  EXPECT_TRUE(
      cluster_.manager->has_event("ClaimMadeAgain", "checkpoints that were on it are lost"));
}

TEST_F(JobRunsTest, AServiceThatIsDeletedIsMadeAgainForARunThatWaits) {
  use_workers(2);
  store_study();
  ASSERT_TRUE(start().ok());
  ASSERT_EQ(cluster_.count(kube::kServices), 1u);
  cluster_.server.remove(kube::kServices, {"team", "w-digits-study-ui"});
  const auto is_back = [&] {
    (void)observe();
    return cluster_.count(kube::kServices) == 1u;
  };
  EXPECT_TRUE(eventually(is_back));
}

TEST_F(JobRunsTest, WarnsOfAOneNodeVolumeIfTrialsRunInParallel) {
  const struct {
    const char* mode;
    std::int64_t parallelism;
    bool warned;
  } cases[] = {
      {"ReadWriteOnce", 2, true}, {"ReadWriteOnce", 1, false}, {"ReadWriteMany", 2, false}};
  for (const auto& c : cases) {
    cluster_.start_operator();
    study_.spec.budget.parallelism = c.parallelism;
    study_.spec.trial.checkpoints.emplace().size = 1e9;
    study_.spec.trial.checkpoints->access_mode = c.mode;
    ASSERT_TRUE(runs().check(study_).ok());
    EXPECT_EQ(cluster_.manager->has_event("OneNodeVolume", c.mode), c.warned) << c.mode;
  }
}

TEST_F(JobRunsTest, AnExpressionThatDoesNotMatchNaNIsWarnedOf) {
  study_.spec.trial.metrics = {"(\\w+)=([-+.\\w]+)"};
  ASSERT_TRUE(runs().check(study_).ok());
  EXPECT_FALSE(cluster_.manager->has_event("MetricsMissNaN", ""));
  study_.spec.trial.metrics = {"(\\w+)=([\\d.]+)"};
  ASSERT_TRUE(runs().check(study_).ok());
  EXPECT_TRUE(cluster_.manager->has_event("MetricsMissNaN", "does not match nan or inf"));
}

// The clocks of the pod's node and of its trainer are ten minutes off.
TEST_F(JobRunsTest, TimesAreByOurOwnClock) {
  constexpr std::int64_t kOff = 600'000;
  for (const std::int64_t off : {-kOff, kOff}) {
    cluster_.start_operator();
    trial_.status.report.reset();
    ASSERT_TRUE(start().ok());
    const std::int64_t waited_ms = cluster_.clock.now_ms();
    EXPECT_EQ(observe().state, core::RunState::kPending);
    cluster_.server.set(kube::kPods, running_pod(job(), waited_ms + off));
    ASSERT_TRUE(eventually([&] { return observe().state == core::RunState::kRunning; }));
    trial_.status.report.emplace().at_ms = waited_ms + off;
    const core::Run run = observe();
    EXPECT_GE(run.started_ms, waited_ms);
    EXPECT_LE(run.started_ms, cluster_.clock.now_ms());
    EXPECT_GE(run.heard_ms, waited_ms);
    EXPECT_LE(run.heard_ms, cluster_.clock.now_ms());
    cluster_.server.remove(kube::kPods, {"team", "digits-0-r0-0-x"});
    cluster_.server.remove(kube::kJobs, {"team", kJob});
  }
}

// A user deleted the Job of run 0, and its pod has its grace period: it may still write.
TEST_F(JobRunsTest, ARunStartsOnceThePodsOfTheOneBeforeHaveEnded) {
  ASSERT_TRUE(start().ok());
  Json pod = running_pod(job(), cluster_.clock.now_ms());
  const auto end_at = [&](std::int64_t ms) {
    pod.find("metadata")->set("deletionTimestamp", api::format_timestamp(ms));
    cluster_.server.set(kube::kPods, pod);
  };
  end_at(cluster_.clock.now_ms() + 3'600'000);  // longer than the test takes on this fast clock
  ASSERT_TRUE(eventually([&] { return observe().state == core::RunState::kRunning; }));
  ASSERT_TRUE(runs().remove(trial_, 0).ok());
  ASSERT_TRUE(runs().start(study_, trial_, 1).ok());
  EXPECT_EQ(cluster_.count(kube::kJobs), 0u);
  EXPECT_EQ(observe().id, 1);
  EXPECT_EQ(observe().state, core::RunState::kPending);
  EXPECT_THAT(observe().reason, HasSubstr("digits-0-r0-0-x of an earlier run has not ended"));
  pod.find("metadata")->erase("ownerReferences");  // kubectl delete job --cascade=orphan
  cluster_.server.set(kube::kPods, pod);
  EXPECT_TRUE(eventually(
      [&] { return observe().reason.find("delete the pod as well") != std::string::npos; }));
  pod.find("status")->set("phase", "Failed");
  cluster_.server.set(kube::kPods, pod);
  EXPECT_TRUE(eventually([&] { return runs().observe(trial_).value().empty(); }))
      << "so that it is started again";
  ASSERT_TRUE(runs().start(study_, trial_, 1).ok());
  EXPECT_EQ(cluster_.count(kube::kJobs), 1u);
}

// Only the watch of pods shows that a trial is gone. A run that still has to wait is started again,
// and waits.
TEST_F(JobRunsTest, WhatWaitsForPodsIsForgottenWithThem) {
  ASSERT_TRUE(start().ok());
  Json pod = running_pod(job(), cluster_.clock.now_ms());
  Json other = pod;
  other.find("metadata")->set("name", "digits-0-r0-1-x");
  cluster_.server.set(kube::kPods, pod);
  cluster_.server.set(kube::kPods, other);
  ASSERT_TRUE(eventually([&] { return observe().state == core::RunState::kRunning; }));
  ASSERT_TRUE(runs().remove(trial_, 0).ok());
  ASSERT_TRUE(runs().start(study_, trial_, 1).ok());
  EXPECT_THAT(observe().reason, HasSubstr("of an earlier run has not ended"));
  cluster_.server.remove(kube::kPods, {"team", "digits-0-r0-1-x"});
  EXPECT_TRUE(eventually([&] { return runs().observe(trial_).value().empty(); }));
  ASSERT_TRUE(runs().start(study_, trial_, 1).ok());
  EXPECT_THAT(observe().reason, HasSubstr("digits-0-r0-0-x of an earlier run has not ended"));
}

TEST_F(JobRunsTest, APodOnALostNodeHoldsNoRunForEver) {
  ASSERT_TRUE(start().ok());
  Json pod = running_pod(job(), cluster_.clock.now_ms());
  const std::int64_t long_ago = cluster_.clock.now_ms() - kLostMs;
  pod.find("metadata")->set("deletionTimestamp", api::format_timestamp(long_ago));
  cluster_.server.set(kube::kPods, pod);
  ASSERT_TRUE(eventually([&] { return observe().started_ms != 0; }));
  ASSERT_TRUE(runs().remove(trial_, 0).ok());
  ASSERT_TRUE(runs().start(study_, trial_, 1).ok());
  EXPECT_EQ(cluster_.count(kube::kJobs), 1u);
}

// Both runs would write to the claim, and the user's program has no fence.
TEST_F(JobRunsTest, APodOnALostNodeHoldsTheNextRunWhereItMayWriteToAClaim) {
  ASSERT_TRUE(start().ok());
  Json pod = running_pod(job(), cluster_.clock.now_ms());
  const std::int64_t long_ago = cluster_.clock.now_ms() - 10 * kLostMs;
  pod.find("metadata")->set("deletionTimestamp", api::format_timestamp(long_ago));
  const Json claim = Json::object({{"claimName", "shared"}});
  const Json volume = Json::object({{"name", "v"}, {"persistentVolumeClaim", claim}});
  pod.set("spec", Json::object({{"nodeName", "n1"}, {"volumes", Json(Json::Array{volume})}}));
  cluster_.server.set(kube::kPods, pod);
  ASSERT_TRUE(eventually([&] { return observe().started_ms != 0; }));
  ASSERT_TRUE(runs().remove(trial_, 0).ok());
  ASSERT_TRUE(runs().start(study_, trial_, 1).ok());
  EXPECT_EQ(cluster_.count(kube::kJobs), 0u) << "the second run is held";
}

// A client that knows the uid of a Job can make a pod that names it as its owner, but only in
// another namespace.
TEST_F(JobRunsTest, APodOfAnotherNamespaceIsNoWorker) {
  ASSERT_TRUE(start().ok());
  Json forged = pod_of(job(), R"({"step": 1, "loss": 0, "final": true})");
  forged.find("metadata")->set("namespace", "strangers");
  const kube::Pod pod = kube::read_pod(forged).value();
  const kube::Job known = kube::read_job(job()).value();
  EXPECT_NE(group_of(pod), pod_group(known));
  EXPECT_EQ(group_of(kube::read_pod(pod_of(job(), "")).value()), pod_group(known));
}

// A pod with a node that cannot start: its image is missing.
Json stuck_pod(const Json& job, std::int64_t scheduled_ms) {
  Json pod = pod_of(job, "");
  const Json waiting = Json::object({{"reason", "ImagePullBackOff"}, {"message", "no such image"}});
  const Json container = Json::object(
      {{"name", api::kTrialContainer}, {"state", Json::object({{"waiting", waiting}})}});
  const std::string since = api::format_timestamp(scheduled_ms);
  const Json scheduled =
      Json::object({{"type", "PodScheduled"}, {"status", "True"}, {"lastTransitionTime", since}});
  pod.set("spec", Json::object({{"nodeName", "node"}}));
  pod.find("metadata")->set("creationTimestamp", since);
  pod.set("status", Json::object({{"phase", "Pending"},
                                  {"conditions", Json(Json::Array{scheduled})},
                                  {"containerStatuses", Json(Json::Array{container})}}));
  return pod;
}

TEST_F(JobRunsTest, APodThatDoesNotStartGivesItsNodeBackForAWhile) {
  HandClock clock(control::SystemClock().now_ms());
  kube::Client client(cluster_.server, {});
  kube::Cache<kube::Job> jobs;
  kube::Cache<kube::Pod> pods;
  JobOptions options{"image"};
  options.start_timeout_ms = 60'000;
  JobRuns slow(client, jobs, pods, cluster_.manager->store(), clock, options);
  ASSERT_TRUE(slow.start(study_, trial_, 0).ok());
  const Json pod = stuck_pod(job(), clock.now_ms());
  cluster_.server.set(kube::kPods, pod);
  pods.put(kube::read_pod(pod).value());
  clock.pass(59'000);
  EXPECT_THAT(slow.observe(trial_).value().at(0).reason, HasSubstr("cannot be pulled"));
  EXPECT_EQ(text_at(job(), {"metadata", "deletionTimestamp"}), "");
  clock.pass(1'000);
  EXPECT_EQ(slow.observe(trial_).value().at(0).state, core::RunState::kPending);
  EXPECT_NE(text_at(job(), {"metadata", "deletionTimestamp"}), "") << "its GPUs are for others";
  pods.erase({"team", "digits-0-r0-0-x"}, text_at(pod, {"metadata", "uid"}), "");
  jobs.erase({"team", kJob}, jobs.get({"team", kJob})->metadata.uid, "");
  cluster_.server.collect_garbage();
  const core::Run run = slow.observe(trial_).value().at(0);
  EXPECT_EQ(run.state, core::RunState::kPending) << "no run is spent";
  EXPECT_THAT(run.reason, HasSubstr("its image cannot be pulled"));
  EXPECT_THAT(run.reason, HasSubstr("is tried again after 10m"));
  clock.pass(600'000);
  EXPECT_TRUE(slow.observe(trial_).value().empty()) << "so it is started again";
}

// kubectl delete trial --cascade=orphan takes the owner away.
TEST_F(JobRunsTest, AJobThatItsTrialLeftBehindIsDeletedAndSaid) {
  ASSERT_TRUE(start().ok());
  ASSERT_TRUE(runs().remove_orphans("team", "digits-0").ok());
  EXPECT_EQ(cluster_.count(kube::kJobs), 1u) << "the garbage collector deletes what has an owner";
  Json orphan = job();
  orphan.find("metadata")->erase("ownerReferences");
  Json mine = orphan;  // somebody else's Job, with our labels
  mine.find("metadata")->set("name", "mine");
  mine.find("metadata")->set("uid", "another-uid");
  cluster_.server.set(kube::kJobs, mine);
  cluster_.server.set(kube::kJobs, orphan);
  EXPECT_TRUE(eventually([&] {
    return runs().remove_orphans("team", "digits-0").ok() && cluster_.count(kube::kJobs) == 1;
  }));
  EXPECT_FALSE(cluster_.server.get(kube::kJobs, {"team", "mine"}).is_null());
  EXPECT_TRUE(cluster_.manager->has_event("OrphanedJob", "left behind by trial digits-0"));
}

TEST_F(JobRunsTest, ADeletionThatFailedLeavesTheRunInSight) {
  ASSERT_TRUE(start().ok());
  kube::Fault fault;
  fault.kind = kube::Fault::Kind::kRefused;
  fault.matches = [](const kube::HttpRequest& request) { return request.method == "DELETE"; };
  cluster_.server.inject(fault);
  EXPECT_FALSE(runs().remove(trial_, 0).ok());
  EXPECT_EQ(observe().state, core::RunState::kPending);
}

TEST_F(JobRunsTest, AClaimThatIsForbiddenDelaysAndSaysSo) {
  refuse("persistentvolumeclaims", ErrorCode::kForbidden, "exceeded quota: disks");
  study_.spec.trial.checkpoints.emplace().size = 1e9;
  ASSERT_TRUE(start().ok());
  EXPECT_EQ(observe().state, core::RunState::kPending);
  EXPECT_THAT(observe().reason, HasSubstr("exceeded quota: disks"));
  EXPECT_EQ(cluster_.count(kube::kJobs), 0u) << "its pod would wait for the claim without success";
}

TEST_F(JobRunsTest, WhatTheQuotaForbidsWaitsInTheServersWordsAndIsAskedForAgain) {
  refuse("jobs", ErrorCode::kForbidden, "exceeded quota: few");
  ASSERT_TRUE(start().ok());
  EXPECT_EQ(observe().state, core::RunState::kPending);
  EXPECT_THAT(observe().reason, HasSubstr("exceeded quota: few"));
  ASSERT_TRUE(runs().stop(trial_, 0).ok());
  EXPECT_TRUE(runs().observe(trial_).value().empty());
}

// The server accepted such a Job when the Study began.
TEST_F(JobRunsTest, APolicyThatComesLaterDelaysARunAndFailsNone) {
  for (const char* const resource : {"persistentvolumeclaims", "services", "jobs"}) {
    use_workers(2);
    study_.spec.trial.checkpoints.emplace().size = 1e9;
    cluster_.start_operator();
    refuse(resource, ErrorCode::kInvalid, "denied by policy");
    const Status started = start();
    ASSERT_FALSE(started.ok());
    EXPECT_EQ(started.error().code, ErrorCode::kUnavailable) << resource;
    EXPECT_THAT(started.error().message, HasSubstr("denied by policy"));
  }
  cluster_.refuses = nullptr;
  EXPECT_TRUE(start().ok());
}

TEST_F(JobRunsTest, ATemplateThatNoJobCanBeMadeFromCanNeverStart) {
  trial_.metadata.name = std::string(62, 'x');
  const Status started = start();
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(started.error().message, HasSubstr("give the Study a shorter name"));
}

// A pod of Study `other` for which no node has room, made at `created`.
Json waiting_pod(const std::string& other, const std::string& name, const std::string& created) {
  const Json condition = Json::object({{"type", "PodScheduled"},
                                       {"status", "False"},
                                       {"reason", "Unschedulable"},
                                       {"message", "0/2 nodes: Insufficient nvidia.com/gpu"}});
  return Json::object(
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata", Json::object({{"name", name},
                                  {"namespace", "team"},
                                  {"creationTimestamp", created},
                                  {"labels", Json::object({{core::kStudyLabel, other},
                                                           {kTrialLabel, other + "-0"}})}})},
       {"status",
        Json::object({{"phase", "Pending"}, {"conditions", Json(Json::Array{condition})}})}});
}

// core/study/elastic.h makes room for it.
TEST_F(JobRunsTest, AnElasticStudyHearsOfTrialsOfOtherStudiesThatWaitForGpus) {
  study_.spec.trial.workers = {1, 4, api::WorkersSizing::kAuto};
  study_.spec.trial.gpu.emplace().count = 1;
  const auto waiting = [this] { return runs().capacity(study_).waiting_elsewhere_ms; };
  std::string with_gpu = template_study(1) + "    gpu: {count: 1}\n";
  with_gpu.replace(with_gpu.find("name: digits"), 12, "name: letters");
  cluster_.apply(with_gpu, "letters-uid");
  std::string without = template_study(1);
  without.replace(without.find("name: digits"), 12, "name: cpu-only");
  cluster_.apply(without, "cpu-only-uid");

  // The cluster's clock runs fast: all pods remain young for the time of this test.
  const std::int64_t later_ms = (cluster_.clock.now_ms() / 1000 + 86'400) * 1000;
  const auto pod = [&](const char* study, const char* name, std::int64_t second) {
    const std::string created = api::format_timestamp(later_ms + second * 1000);
    cluster_.server.set(kube::kPods, waiting_pod(study, name, created.c_str()));
  };
  pod("digits", "a", 1);
  pod("cpu-only", "b", 2);
  pod("letters", "c", 4);
  ASSERT_TRUE(eventually([&] { return waiting().has_value(); }));
  EXPECT_EQ(waiting(), later_ms + 4'000) << "its own pods do not count, nor those without GPUs";
  EXPECT_EQ(runs().capacity(study_).who_waits, "team/letters");
  pod("letters", "d", 3);
  EXPECT_TRUE(eventually([&] { return waiting() == later_ms + 3'000; }))
      << "the one that waits longest";
  for (const char* name : {"c", "d"}) cluster_.server.remove(kube::kPods, {"team", name});
  pod("letters", "e", -86'400 - 3'600);
  pod("letters", "f", 5);
  EXPECT_TRUE(eventually([&] { return waiting() == later_ms + 5'000; }))
      << "one that has waited for an hour, while others made room, waits for something else";

  study_.spec.trial.workers.sizing = api::WorkersSizing::kManual;
  EXPECT_EQ(waiting(), std::nullopt) << "a Study of manual sizing does not ask";
}

}  // namespace
}  // namespace fettle::kubernetes
