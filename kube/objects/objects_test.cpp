#include "kube/objects/objects.h"

#include <gtest/gtest.h>

namespace fettle::kube {
namespace {

Json json(std::string_view text) { return parse_json(text).value(); }

TEST(ReadJob, ReadsTheFieldsThatControllersUse) {
  const Job job = read_job(json(R"({
    "kind": "Job",
    "metadata": {"name": "digits-0-r0", "namespace": "team", "uid": "u", "resourceVersion": "9",
      "labels": {"fettle.dev/study": "digits"}, "deletionTimestamp": "2026-01-01T00:00:01Z",
      "ownerReferences": [{"kind": "Other", "name": "x", "uid": "1"},
                          {"kind": "Trial", "name": "digits-0", "uid": "2", "controller": true}]},
    "spec": {"completions": 4, "suspend": true},
    "status": {"active": 1, "succeeded": 2, "failed": 3, "startTime": "1970-01-01T00:00:02Z",
      "conditions": [
        {"type": "Suspended", "status": "False"},
        {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": "exit 3",
         "lastTransitionTime": "1970-01-01T00:00:03Z"}]}})"))
                      .value();
  EXPECT_EQ(job.metadata.name, "digits-0-r0");
  EXPECT_EQ(job.metadata.ns, "team");
  EXPECT_EQ(job.metadata.labels.at("fettle.dev/study"), "digits");
  EXPECT_EQ(job.metadata.deleted_ms, 1767225601000);
  ASSERT_TRUE(job.owner);
  EXPECT_EQ(job.owner->uid, "2");
  EXPECT_EQ(job.completions, 4);
  EXPECT_TRUE(job.suspended);
  EXPECT_EQ(job.active, 1);
  EXPECT_EQ(job.succeeded, 2);
  EXPECT_EQ(job.failed, 3);
  EXPECT_EQ(job.started_ms, 2000);
  EXPECT_EQ(find_condition(job.conditions, "Suspended"), nullptr);
  ASSERT_NE(find_condition(job.conditions, "Failed"), nullptr);
  EXPECT_EQ(find_condition(job.conditions, "Failed")->message, "exit 3");
  EXPECT_EQ(find_condition(job.conditions, "Failed")->since_ms, 3000);
}

TEST(ReadPod, TellsWaitingRunningAndTerminatedContainersApart) {
  const Pod pod = read_pod(json(R"({
    "metadata": {"name": "p", "namespace": "team"},
    "spec": {"nodeName": "node-1"},
    "status": {"phase": "Running", "reason": "Evicted", "message": "low on memory",
      "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                      "message": "0/3 nodes are available"},
                     {"type": "DisruptionTarget", "status": "True", "reason": "Preempted"}],
      "containerStatuses": [
        {"name": "a", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no"}}},
        {"name": "b", "state": {"running": {"startedAt": "1970-01-01T00:00:01Z"}}},
        {"name": "c", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled",
          "message": "{}", "startedAt": "1970-01-01T00:00:01Z",
          "finishedAt": "1970-01-01T00:00:05Z"}}}]}})"))
                      .value();
  EXPECT_EQ(pod.node, "node-1");
  EXPECT_EQ(pod.reason, "Evicted");
  EXPECT_EQ(pod.unschedulable, "0/3 nodes are available");
  EXPECT_NE(find_condition(pod.conditions, "DisruptionTarget"), nullptr);
  ASSERT_EQ(pod.containers.size(), 3U);
  EXPECT_EQ(pod.containers[0].waiting_reason, "ImagePullBackOff");
  EXPECT_FALSE(pod.containers[0].running || pod.containers[0].terminated);
  EXPECT_TRUE(pod.containers[1].running);
  EXPECT_EQ(pod.containers[1].started_ms, 1000);
  EXPECT_TRUE(pod.containers[2].terminated);
  EXPECT_EQ(pod.containers[2].exit_code, 137);
  EXPECT_EQ(pod.containers[2].terminated_reason, "OOMKilled");
  EXPECT_EQ(pod.containers[2].termination_message, "{}");
  EXPECT_EQ(pod.containers[2].finished_ms, 5000);
}

TEST(ReadPod, TellsWhenItsDeletionWasAskedFor) {
  const Pod pod = read_pod(json(R"({"metadata": {"name": "p",
      "deletionTimestamp": "1970-01-01T00:01:00Z", "deletionGracePeriodSeconds": 20}})"))
                      .value();
  EXPECT_EQ(pod.metadata.deleted_ms, 60'000) << "the end of its grace period";
  EXPECT_EQ(pod.doomed_ms, 40'000);
  EXPECT_EQ(read_pod(json(R"({"metadata": {"name": "p"}})")).value().doomed_ms, 0);
}

TEST(ReadObjects, TakeFieldsOfWrongTypesAsMissing) {
  const Job job = read_job(json(R"({"metadata": {"name": "a", "labels": ["x"], "uid": 3},
      "spec": {"completions": "many"}, "status": {"conditions": {"type": "Failed"}}})"))
                      .value();
  EXPECT_EQ(job.completions, 1);
  EXPECT_TRUE(job.conditions.empty());
  EXPECT_EQ(job.metadata.uid, "");
}

TEST(ReadObjects, RefuseOtherKinds) {
  EXPECT_EQ(read_job(json(R"({"kind": "Pod", "metadata": {"name": "a"}})")).error().message,
            "kind is Pod, expected Job");
  EXPECT_EQ(read_pod(json("{}")).error().message, "Pod without metadata.name");
}

}  // namespace
}  // namespace fettle::kube
