// How runs of several workers go and end, as tables: the fate of each worker, and which of them is
// at fault.
#include "runtime/kubernetes/job/rank_ends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/kubernetes/pod/labels.h"
#include "runtime/kubernetes/pod/service.h"

namespace fettle::kubernetes {
namespace {

using api::Outcome;
using core::RunState;
using testing::HasSubstr;

constexpr std::int64_t kSecond = 1'000;
constexpr std::int64_t kBegan = 1'000 * kSecond;  // when the pods were made
constexpr std::int64_t kNow = kBegan + 3'600 * kSecond;

// The pods of the workers; times in seconds since they were made.
kube::Pod pod(std::int64_t rank) {
  kube::Pod out;
  out.metadata.name = "digits-0-r0-" + std::to_string(rank);
  out.metadata.uid = "pod-" + std::to_string(rank);
  out.metadata.created_ms = kBegan;
  out.metadata.labels["batch.kubernetes.io/job-completion-index"] = std::to_string(rank);
  out.phase = "Pending";
  return out;
}

kube::Pod on_node(kube::Pod out) {
  out.node = "node-" + out.metadata.name;
  return out;
}

kube::Pod unschedulable(std::int64_t rank) {
  kube::Pod out = pod(rank);
  out.unschedulable = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.";
  return out;
}

kube::Pod pulling(std::int64_t rank) {
  kube::Pod out = on_node(pod(rank));
  out.containers.emplace_back().name = "trainer";
  out.containers[0].waiting_reason = "ContainerCreating";
  return out;
}

kube::Pod running(std::int64_t rank) {
  kube::Pod out = on_node(pod(rank));
  out.phase = "Running";
  out.containers.emplace_back().name = "trainer";
  out.containers[0].running = true;
  out.containers[0].started_ms = kBegan + 2 * kSecond;
  return out;
}

kube::Pod ended(std::int64_t rank, int code, std::int64_t second) {
  kube::Pod out = on_node(pod(rank));
  out.phase = code == 0 ? "Succeeded" : "Failed";
  kube::Container& container = out.containers.emplace_back();
  container.name = "trainer";
  container.terminated = true;
  container.terminated_reason = code == 0 ? "Completed" : "Error";
  container.exit_code = code;
  container.started_ms = kBegan + 2 * kSecond;
  container.finished_ms = kBegan + second * kSecond;
  return out;
}

kube::Pod disrupted(kube::Pod out, std::int64_t second) {
  out.conditions.push_back(
      {"DisruptionTarget", "PreemptionByScheduler", "", kBegan + second * kSecond});
  return out;
}

kube::Pod deleted(kube::Pod out, std::int64_t second) {
  out.doomed_ms = kBegan + second * kSecond;
  out.metadata.deleted_ms = out.doomed_ms + 30 * kSecond;
  return out;
}

kube::Pod made_at(kube::Pod out, std::int64_t second) {
  out.metadata.created_ms = kBegan + second * kSecond;
  out.metadata.uid += "-again";
  return out;
}

kube::Job job(std::int64_t workers) {
  kube::Job out;
  out.metadata.name = "digits-0-r0";
  out.metadata.ns = "team";
  out.metadata.created_ms = kBegan - kSecond;
  out.metadata.annotations[kServiceAnnotation] = "w-digits-0-r0";
  out.metadata.annotations[kWorkersAnnotation] = std::to_string(workers);
  out.completions = workers;
  return out;
}

kube::Job elastic_job(std::int64_t workers, std::int64_t least, std::int64_t at_start) {
  kube::Job out = job(workers);
  out.metadata.annotations[kWorkersAnnotation] = std::to_string(at_start);
  out.metadata.annotations[kMinWorkersAnnotation] = std::to_string(least);
  return out;
}

kube::Job failing(kube::Job out, std::int64_t second) {
  out.conditions.push_back(
      {"FailureTarget", "BackoffLimitExceeded", "", kBegan + second * kSecond});
  return out;
}

struct Asked {
  bool stop = false;
  std::string first_uid = {};  // "" = the run has not run
  std::int64_t now_ms = kNow;
};

core::Run read(const kube::Job& about, const std::vector<kube::Pod>& pods, const Asked& asked) {
  std::vector<PodPtr> shared;
  for (const kube::Pod& one : pods) shared.push_back(std::make_shared<kube::Pod>(one));
  JobView view{about, shared, asked.stop, asked.now_ms};
  view.first_uid = asked.first_uid;
  view.gang_timeout_ms = 120 * kSecond;
  view.start_timeout_ms = 1800 * kSecond;
  return run_of_job(view);
}
core::Run read(const kube::Job& about, const std::vector<kube::Pod>& pods) {
  return read(about, pods, {});
}

struct EndCase {
  const char* what;
  kube::Job job;
  std::vector<kube::Pod> pods;
  Outcome outcome;
  std::string said;
};

void expect_ends(const std::vector<EndCase>& cases) {
  for (const EndCase& c : cases) {
    const core::Run run = read(c.job, c.pods);
    ASSERT_EQ(run.state, RunState::kExited) << c.what;
    EXPECT_EQ(run.outcome, c.outcome) << c.what << ": " << run.reason;
    EXPECT_THAT(run.reason, HasSubstr(c.said)) << c.what;
  }
}

kube::Pod out_of_memory(std::int64_t rank, std::int64_t second) {
  kube::Pod out = ended(rank, 137, second);
  out.containers[0].terminated_reason = "OOMKilled";
  return out;
}

TEST(RankEnds, AFailureBeforeAllElseIsTheTrialsOwn) {
  expect_ends({
      {"the others miss it",
       job(3),
       {ended(0, 75, 61), ended(1, 75, 61), ended(2, 3, 60)},
       Outcome::kFailed,
       "worker 2: exit code 3"},
      {"the Job controller ends the others",
       failing(job(2), 61),
       {deleted(ended(0, 143, 62), 61), ended(1, 3, 60)},
       Outcome::kFailed,
       "worker 1: exit code 3"},
      {"... and its node's clock is ahead",
       failing(job(2), 61),
       {deleted(ended(0, 143, 62), 61), ended(1, 3, 90)},
       Outcome::kFailed,
       "worker 1: exit code 3"},
      {"two fail: the first one's is the cause",
       job(2),
       {ended(0, 1, 70), ended(1, 3, 60)},
       Outcome::kFailed,
       "worker 1: exit code 3"},
      {"another is preempted afterwards",
       job(2),
       {ended(0, 1, 61), disrupted(running(1), 70)},
       Outcome::kFailed,
       "worker 0: exit code 1"},
      {"at once, while another's image is pulled",
       job(2),
       {ended(0, 1, 3), pulling(1)},
       Outcome::kFailed,
       "worker 0: exit code 1"},
      {"too much memory",
       job(2),
       {ended(0, 75, 61), out_of_memory(1, 60)},
       Outcome::kOutOfMemory,
       "worker 1: used more memory"},
      {"an elastic run continued long after another was made again",
       elastic_job(2, 1, 2),
       {ended(0, 1, 1800), made_at(running(1), 1200)},
       Outcome::kFailed,
       "worker 0: exit code 1"},
  });
}

kube::Pod without_a_time(kube::Pod out) {
  out.containers[0].finished_ms = 0;
  return out;
}

TEST(RankEnds, AFailureForAnothersSakeIsADisruption) {
  expect_ends({
      {"another is preempted, and nothing says when this one failed",
       job(2),
       {without_a_time(ended(0, 1, 61)), disrupted(ended(1, 143, 60), 59)},
       Outcome::kDisrupted,
       "worker 1: its pod was disrupted (PreemptionByScheduler)"},
      {"another is preempted",
       job(2),
       {ended(0, 1, 61), disrupted(ended(1, 143, 60), 59)},
       Outcome::kDisrupted,
       "worker 1: its pod was disrupted (PreemptionByScheduler)"},
      {"... and has not ended yet",
       job(2),
       {ended(0, 1, 61), disrupted(running(1), 60)},
       Outcome::kDisrupted,
       "worker 1: its pod is disrupted (PreemptionByScheduler)"},
      {"another is deleted",
       job(2),
       {ended(0, 1, 61), deleted(ended(1, 143, 62), 60)},
       Outcome::kDisrupted,
       "worker 1: its pod was deleted"},
      {"another is killed without a word",
       job(2),
       {ended(0, 1, 61), ended(1, 137, 60)},
       Outcome::kDisrupted,
       "worker 1: exit code 137"},
      {"another never ran: no GPU",
       job(2),
       {ended(0, 1, 305), unschedulable(1)},
       Outcome::kDisrupted,
       "worker 1: it never ran, and worker 0 gave up: no node has room for it: 0/3 nodes"},
      {"another never ran: a slow image",
       job(2),
       {ended(0, 1, 305), pulling(1)},
       Outcome::kDisrupted,
       "worker 1: it never ran, and worker 0 gave up: exit code 1"},
      {"another was made again, and it had waited for that",
       job(2),
       {ended(0, 1, 1800), made_at(running(1), 1200)},
       Outcome::kDisrupted,
       "worker 1: its pod was made again, and worker 0 missed it: exit code 1"},
      {"it says that it misses others: the network",
       job(2),
       {ended(0, 75, 60), running(1)},
       Outcome::kDisrupted,
       "worker 0: exit code 75: another worker did not come or was lost"},
  });
}

TEST(RankEnds, AWorkerThatNoOtherWaitsForDoesNotExcuseAFailure) {
  const std::vector<kube::Pod> second_never_ran = {ended(0, 1, 305), unschedulable(1)};
  kube::Job by_hand = job(2);
  by_hand.metadata.annotations[kWorkersAnnotation] = "1";
  const struct {
    const char* what;
    kube::Job job;
    bool has_begun;
    Outcome outcome;
  } cases[] = {
      {"it is to join in a resize", elastic_job(2, 1, 1), true, Outcome::kFailed},
      {"... of a user's image", by_hand, true, Outcome::kFailed},
      {"it is to come back to an elastic run", elastic_job(2, 1, 2), true, Outcome::kFailed},
      {"all are needed to begin", elastic_job(2, 1, 2), false, Outcome::kDisrupted},
      {"all are needed at all times", job(2), true, Outcome::kDisrupted},
  };
  for (const auto& c : cases) {
    Asked asked;
    if (c.has_begun) asked.first_uid = second_never_ran[0].metadata.uid;
    EXPECT_EQ(read(c.job, second_never_ran, asked).outcome, c.outcome) << c.what;
  }
}

TEST(RankEnds, OneWorkerAloneMissesNobody) {
  kube::Job alone = job(1);
  alone.metadata.annotations.erase(kServiceAnnotation);
  EXPECT_EQ(read(alone, {ended(0, 75, 60)}).outcome, Outcome::kFailed);
  EXPECT_EQ(read(elastic_job(1, 1, 2), {ended(0, 75, 60)}).outcome, Outcome::kDisrupted)
      << "the last of several does";
}

TEST(RankEnds, WorkersThatWereTakenAwayCountForNothing) {
  const kube::Pod gone = deleted(ended(2, 143, 60), 50);
  const core::Run run =
      read(elastic_job(2, 1, 4), {running(0), running(1), gone, deleted(running(3), 50)},
           {.first_uid = "pod-0"});
  EXPECT_EQ(run.state, RunState::kRunning);
  EXPECT_EQ(run.workers, 2);
  EXPECT_EQ(run.running_workers, 2);
  EXPECT_EQ(read(elastic_job(2, 1, 4), {ended(0, 0, 60), ended(1, 0, 60), gone}).outcome,
            Outcome::kSucceeded);
}

TEST(RankEnds, ARunIsOneThatRunsWhileEnoughOfItsWorkersDo) {
  const struct {
    const char* what;
    kube::Job job;
    std::vector<kube::Pod> pods;
    bool has_run;
    RunState state;
    std::int64_t running;
  } cases[] = {
      {"all must run first",
       elastic_job(4, 1, 4),
       {running(0), running(1), running(2), pulling(3)},
       false,
       RunState::kPending,
       3},
      {"then it has begun",
       elastic_job(2, 1, 2),
       {running(0), running(1)},
       false,
       RunState::kRunning,
       2},
      {"grown, and no GPU is free",
       elastic_job(4, 1, 1),
       {running(0), unschedulable(1), unschedulable(2), unschedulable(3)},
       true,
       RunState::kRunning,
       1},
      {"grown before it began: it begins with those it was made with",
       elastic_job(4, 1, 1),
       {running(0), unschedulable(1)},
       false,
       RunState::kRunning,
       1},
      {"one is evicted",
       elastic_job(4, 1, 4),
       {running(0), running(1), disrupted(ended(2, 143, 60), 60), running(3)},
       true,
       RunState::kRunning,
       3},
      {"too few are left",
       elastic_job(4, 2, 4),
       {running(0), disrupted(ended(1, 143, 60), 60), disrupted(ended(2, 143, 60), 60),
        disrupted(ended(3, 143, 60), 60)},
       true,
       RunState::kPending,
       1},
      {"nothing continues without the first",
       elastic_job(2, 1, 2),
       {disrupted(ended(0, 143, 60), 60), running(1)},
       true,
       RunState::kPending,
       1},
      {"where all are needed one is missed",
       job(2),
       {running(0), disrupted(ended(1, 143, 60), 60)},
       true,
       RunState::kPending,
       1},
  };
  for (const auto& c : cases) {
    const core::Run run = read(c.job, c.pods, {.first_uid = c.has_run ? "pod-0" : ""});
    EXPECT_EQ(run.state, c.state) << c.what << ": " << run.reason;
    EXPECT_EQ(run.running_workers, c.running) << c.what;
  }
}

TEST(RankEnds, AnElasticRunEndsWithItsFirstWorker) {
  const core::Run run =
      read(elastic_job(3, 1, 2), {ended(0, 0, 60), ended(1, 75, 61), unschedulable(2)});
  EXPECT_EQ(run.outcome, Outcome::kSucceeded) << "one that comes too late finds no other";
}

TEST(RankEnds, ARecreatedRankZeroDoesNotWaitForRemovedWorkers) {
  const std::vector<kube::Pod> pods = {made_at(running(0), 1200)};
  const core::Run run = read(elastic_job(1, 1, 4), pods, {.first_uid = "pod-0"});
  EXPECT_EQ(run.outcome, Outcome::kDisrupted);
  EXPECT_THAT(run.reason, HasSubstr("after the run had shrunk"));
  EXPECT_EQ(read(elastic_job(1, 1, 1), pods, {.first_uid = "pod-0"}).state, RunState::kRunning);
}

TEST(RankEnds, WorkersDoNotHoldTheirGpusForEverForOneThatDoesNotStartAgain) {
  kube::Pod stuck = made_at(unschedulable(1), 1200);
  stuck.unschedulable.clear();
  stuck.node = "node";
  const std::int64_t made_ms = kBegan + 1200 * kSecond;
  const std::vector<kube::Pod> pods = {running(0), stuck};
  const auto after = [&](std::int64_t seconds) {
    return read(job(2), pods, {.first_uid = "pod-0", .now_ms = made_ms + seconds * kSecond});
  };
  EXPECT_EQ(after(1799).state, RunState::kPending);
  EXPECT_EQ(after(1800).outcome, Outcome::kDisrupted);
  EXPECT_THAT(after(1800).reason, HasSubstr("worker 1 was disrupted and does not start again"));
}

TEST(RankEnds, WorkersDoNotHoldTheirGpusForEverForOneThatFindsNoNode) {
  const std::vector<kube::Pod> pods = {running(0), made_at(unschedulable(1), 1200)};
  const std::int64_t made_ms = kBegan + 1200 * kSecond;
  const auto after = [&](std::int64_t seconds, const kube::Job& about) {
    return read(about, pods, {.first_uid = "pod-0", .now_ms = made_ms + seconds * kSecond});
  };
  EXPECT_EQ(after(119, job(2)).state, RunState::kPending);
  const core::Run run = after(120, job(2));
  EXPECT_EQ(run.outcome, Outcome::kDisrupted);
  EXPECT_THAT(run.reason, HasSubstr("worker 1 was disrupted and finds no node: no node has room"));
  EXPECT_TRUE(run.terminating) << "worker 0 still runs";
  EXPECT_EQ(after(120, elastic_job(2, 1, 2)).state, RunState::kRunning);
}

TEST(RankEnds, ARunLingersUntilItsLastWorkerIsGone) {
  const kube::Pod failed = ended(0, 1, 60);
  EXPECT_FALSE(read(job(2), {failed, ended(1, 143, 65)}).terminating);
  EXPECT_FALSE(read(job(2), {failed, unschedulable(1)}).terminating)
      << "it has never been anywhere";
  EXPECT_TRUE(read(job(2), {failed, running(1)}).terminating);
  EXPECT_TRUE(read(elastic_job(1, 1, 2), {ended(0, 0, 60), running(1)}).terminating);
  const kube::Pod terminating = deleted(running(1), 60);  // until 90 s
  const auto at = [&](std::int64_t second) {
    return read(job(2), {failed, terminating}, {.now_ms = kBegan + second * kSecond}).terminating;
  };
  EXPECT_TRUE(at(89));
  EXPECT_TRUE(at(269));
  EXPECT_FALSE(at(270)) << "its node is lost";
}

// Rank 0 may be writing the checkpoint from which the trial continues.
TEST(RankEnds, AStopIsOverWhenAllWorkersAre) {
  const Asked stop{.stop = true, .first_uid = "pod-0"};
  EXPECT_EQ(read(job(2), {running(0), ended(1, 143, 60)}, stop).state, RunState::kRunning);
  EXPECT_EQ(read(job(2), {ended(0, 143, 61), ended(1, 143, 60)}, stop).outcome, Outcome::kStopped);
}

}  // namespace
}  // namespace fettle::kubernetes
