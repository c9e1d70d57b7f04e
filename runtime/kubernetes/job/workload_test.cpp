// Kueue's Workloads as tables, and the message about a Job that waits in a queue.
#include "runtime/kubernetes/job/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/kubernetes/job/queue.h"

namespace fettle::kubernetes {
namespace {

using State = WorkloadView::State;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

Json condition(const char* type, const char* status, const char* message) {
  return Json::object({{"type", type}, {"status", status}, {"message", message}});
}

Json workload(Json::Array conditions, bool active = true) {
  return Json::object({{"metadata", Json::object({{"name", "job-s-0-r0-ab"}})},
                       {"spec", Json::object({{"active", active}})},
                       {"status", Json::object({{"conditions", Json(std::move(conditions))}})}});
}

kube::Job job(const char* priority = "") {
  kube::Job out;
  out.metadata.ns = "team";
  out.metadata.uid = "job-uid";
  out.metadata.labels[kQueueLabel] = "vision";
  if (*priority != '\0') out.metadata.labels[kQueuePriorityLabel] = priority;
  out.suspended = true;
  return out;
}

TEST(Workload, SaysWhyItsJobWaits) {
  const Json full = condition("QuotaReserved", "False", "insufficient unused quota for cpu");
  const Json evicted = condition("Evicted", "True", "exceeded the PodsReady timeout");
  const Json admitted = condition("QuotaReserved", "True", "in ClusterQueue all");
  const Json finished = condition("Finished", "True", "conflict for annotations");
  const struct {
    std::vector<Json> workloads;
    State state;
    std::string message;
  } cases[] = {
      {{}, State::kMissing, ""},
      {{workload({})}, State::kWaiting, ""},
      {{workload({full})}, State::kWaiting, "insufficient unused quota for cpu"},
      {{workload({admitted, evicted})}, State::kWaiting, "exceeded the PodsReady timeout"},
      {{workload({full, evicted})}, State::kWaiting, "insufficient unused quota for cpu"},
      {{workload({full, evicted}, false)}, State::kInactive, "exceeded the PodsReady timeout"},
      {{workload({finished})}, State::kFinished, "conflict for annotations"},
      {{workload({finished}), workload({full})},
       State::kWaiting,
       "insufficient unused quota for cpu"},
  };
  for (const auto& c : cases) {
    const WorkloadView view = read_workloads(c.workloads);
    EXPECT_EQ(view.state, c.state) << c.message;
    EXPECT_EQ(view.message, c.message);
  }
}

TEST(QueueWait, NamesAMissingPriorityClass) {
  QueueWait wait;
  EXPECT_THAT(
      why_queued(job("low"), wait),
      HasSubstr("without such a queue, without WorkloadPriorityClass low or without Kueue"));
  wait.workload.state = State::kMissing;
  EXPECT_THAT(why_queued(job("low"), wait), EndsWith("is there a WorkloadPriorityClass low"));
  EXPECT_THAT(why_queued(job(), wait), EndsWith("Kueue has made no Workload for it"));
}

// If scheduling.k8s.io serves its own Workloads, the short name means those to kubectl.
TEST(QueueWait, NamesTheGroupInTheCommand) {
  EXPECT_THAT(why_queued(job(), {}),
              HasSubstr("kubectl describe workloads.kueue.x-k8s.io -n team -l "
                        "kueue.x-k8s.io/job-uid=job-uid says why"));
}

TEST(QueueWait, SaysKueuesWordsAndTheWayOutOfADeactivation) {
  QueueWait wait;
  wait.workload = {State::kInactive, "job-s-0-r0-ab", "exceeded 1 re-queuing retries"};
  EXPECT_TRUE(is_urgent(wait));
  const std::string words = why_queued(job(), wait);
  EXPECT_THAT(words, HasSubstr("Kueue has deactivated its Workload (exceeded 1 re-queuing"));
  EXPECT_THAT(words, HasSubstr("kubectl delete workloads.kueue.x-k8s.io job-s-0-r0-ab -n team"));
}

TEST(QueueWait, KeepsWhatThePodsWaitedForBefore) {
  QueueWait wait;
  wait.recorded = "image x cannot be pulled";
  EXPECT_TRUE(is_urgent(wait));
  const std::string first = why_queued(job(), wait);
  EXPECT_THAT(first, StartsWith("queue vision has not admitted it"));
  EXPECT_THAT(first, EndsWith("; before that: image x cannot be pulled"));
  wait.recorded = first;
  EXPECT_EQ(why_queued(job(), wait), first);
  wait.recorded = why_queued(job(), {});
  EXPECT_FALSE(is_urgent(wait));
}

TEST(Queue, GrowsOnlyWhereKueueHasPutItsGate) {
  kube::Job about = job();
  EXPECT_FALSE(may_grow(about));
  about.scheduling_gates = {"other"};
  EXPECT_FALSE(may_grow(about));
  about.scheduling_gates.push_back("kueue.x-k8s.io/elastic-job");
  EXPECT_TRUE(may_grow(about));
  EXPECT_TRUE(may_grow(kube::Job())) << "no queue manages it";
}

// The labels after the change; "" = nothing changes.
std::string moved(const api::TrialTemplate& trial, const std::string& before, bool suspended) {
  kube::Job about = job();
  about.suspended = suspended;
  if (!before.empty()) about.metadata.annotations[kQueuedAsAnnotation] = before;
  const std::optional<Json> metadata = moved_queue(trial, about);
  return metadata ? metadata->find("labels")->dump() : "";
}

TEST(Queue, AWaitingJobFollowsItsStudyAndARunningOneKeepsItsQueue) {
  api::TrialTemplate trial;
  trial.queue = "other";
  EXPECT_EQ(moved(trial, "vision/", true), R"({"kueue.x-k8s.io/queue-name":"other"})");
  EXPECT_EQ(moved(trial, "vision/", false), "");
  EXPECT_EQ(moved(trial, "other/", true), "") << "a label that was changed by hand stays";
  EXPECT_EQ(moved(trial, "", true), "") << "its namespace has a default queue";
  trial.queue_priority = "high";
  EXPECT_THAT(moved(trial, "vision/low", false),
              HasSubstr(R"("kueue.x-k8s.io/priority-class":"high")"));
  EXPECT_THAT(moved(trial, "vision/low", false),
              HasSubstr(R"("kueue.x-k8s.io/queue-name":"vision")"));
  EXPECT_EQ(moved(trial, "vision/", false), "") << "Kueue gives a running Job no first class";
  trial.queue_priority = "";
  trial.queue = "vision";
  EXPECT_EQ(moved(trial, "vision/low", true), "") << "nor does it take one away";
}

}  // namespace
}  // namespace fettle::kubernetes
