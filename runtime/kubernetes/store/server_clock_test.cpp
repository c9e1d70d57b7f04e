// An operator on a node whose clock is five minutes off judges by the API server's clock.
#include "runtime/kubernetes/store/server_clock.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "kube/objects/labels.h"
#include "runtime/kubernetes/job/run_of_job.h"
#include "runtime/kubernetes/pod/labels.h"
#include "runtime/kubernetes/testing/job_runs_fixture.h"

namespace fettle::kubernetes {
namespace {

constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kGangTimeout = kMinute;
// More than the possible error of the offset.
constexpr std::int64_t kUnsure = 10'000;

class ServerClockTest : public HandRunsTest, public testing::WithParamInterface<std::int64_t> {
 protected:
  ServerClockTest()
      : HandRunsTest(GetParam(), {.trainer_image = "image", .gang_timeout_ms = kGangTimeout}) {}

  // A pod of the first run, created now, without a node.
  kube::Pod pod_of(std::int64_t rank) {
    kube::Pod pod;
    pod.metadata.name = std::string(kJob) + "-" + std::to_string(rank);
    pod.metadata.ns = "team";
    pod.metadata.uid = "pod-" + std::to_string(rank);
    pod.metadata.created_ms = clock_.now_ms();
    pod.metadata.labels = {{kTrialLabel, "digits-0"}, {kube::kRankLabel, std::to_string(rank)}};
    pod.owner = kube::Owner{"Job", kJob, kube::read_job(job()).value().metadata.uid};
    pod.phase = "Pending";
    return pod;
  }
  kube::Pod running_pod_of(std::int64_t rank) {
    kube::Pod pod = pod_of(rank);
    pod.node = "node";
    pod.phase = "Running";
    pod.containers.emplace_back().name = "trainer";
    pod.containers.back().running = true;
    pod.containers.back().started_ms = clock_.now_ms();
    return pod;
  }
  bool has_second_job() { return !server_.get(kube::kJobs, {"team", "digits-0-r1"}).is_null(); }
};

TEST_P(ServerClockTest, NoRunStartsBesideAPodInItsGracePeriod) {
  ASSERT_TRUE(start().ok());
  kube::Pod pod = running_pod_of(0);
  pod.metadata.deleted_ms = clock_.now_ms() + kMinute;
  pods_.put(pod);
  ASSERT_TRUE(runs_.start(study_, trial_, 1).ok());
  EXPECT_FALSE(has_second_job());
  clock_.pass(kMinute + kLostMs - kUnsure);
  ASSERT_TRUE(runs_.start(study_, trial_, 1).ok());
  EXPECT_FALSE(has_second_job());
  clock_.pass(2 * kUnsure);
  ASSERT_TRUE(runs_.start(study_, trial_, 1).ok());
  EXPECT_TRUE(has_second_job());
}

TEST_P(ServerClockTest, AWorkerThatIsMadeAgainMayWaitForANodeAsLongAsAGang) {
  study_.spec.trial.workers = {2, 2};
  trial_.spec.workers = 2;
  ASSERT_TRUE(start().ok());
  change_job(Json::object({{"spec", Json::object({{"suspend", false}})}}));
  pods_.put(running_pod_of(0));
  pods_.put(pod_of(1));
  api::RunRecord& record = trial_.status.runs.emplace_back();
  record.pod_uid = "pod-0";
  record.running_ms = clock_.now_ms();
  EXPECT_EQ(observe_after(kGangTimeout - kUnsure).state, core::RunState::kPending);
  EXPECT_EQ(observe_after(2 * kUnsure).outcome, api::Outcome::kDisrupted);
}

INSTANTIATE_TEST_SUITE_P(Clocks, ServerClockTest, testing::Values(-5 * kMinute, 0, 5 * kMinute));

}  // namespace
}  // namespace fettle::kubernetes
