// States of Jobs and pods, as a table: objects as the API server has them, and the run that they
// mean.
#include "runtime/kubernetes/job/run_of_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/kubernetes/job/pod_end.h"

namespace fettle::kubernetes {
namespace {

using api::Outcome;
using core::RunState;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t kNow = 1'000'000;

kube::Job job(std::int64_t workers = 1) {
  kube::Job out;
  out.metadata.name = "digits-0-r3";
  out.metadata.ns = "team";
  out.metadata.created_ms = kNow - 1'000;
  out.metadata.labels["fettle.dev/run"] = "3";
  out.completions = workers;
  return out;
}

kube::Pod pod(const std::string& phase, std::int64_t rank = 0) {
  kube::Pod out;
  out.metadata.name = "digits-0-r3-" + std::to_string(rank) + "-x";
  out.metadata.uid = "pod-" + std::to_string(rank);
  out.metadata.labels["batch.kubernetes.io/job-completion-index"] = std::to_string(rank);
  out.phase = phase;
  return out;
}

kube::Container running() {
  kube::Container out;
  out.name = "trainer";
  out.running = true;
  out.started_ms = 900'000;
  return out;
}

kube::Container waiting(const std::string& reason, const std::string& message = "") {
  kube::Container out;
  out.name = "trainer";
  out.waiting_reason = reason;
  out.waiting_message = message;
  return out;
}

kube::Container ended(int code, const std::string& reason = "Error",
                      const std::string& message = "") {
  kube::Container out;
  out.name = "trainer";
  out.terminated = true;
  out.exit_code = code;
  out.terminated_reason = reason;
  out.termination_message = message;
  out.started_ms = 900'000;
  out.finished_ms = 950'000;
  return out;
}

kube::Pod with(kube::Pod pod, kube::Container container) {
  pod.containers.push_back(std::move(container));
  return pod;
}

kube::Pod disrupted(kube::Pod pod, const std::string& reason) {
  pod.conditions.push_back({"DisruptionTarget", reason, "by " + reason, 0});
  return pod;
}

kube::Pod deleted(kube::Pod pod) {
  pod.metadata.deleted_ms = kNow;
  return pod;
}

kube::Pod unschedulable(kube::Pod pod, const std::string& words) {
  pod.unschedulable = words;
  return pod;
}

kube::Pod refused(kube::Pod pod, const std::string& reason, const std::string& message) {
  pod.reason = reason;
  pod.message = message;
  return pod;
}

kube::Pod scheduled(kube::Pod pod, std::int64_t at_ms) {
  pod.conditions.push_back({"PodScheduled", "", "", at_ms});
  pod.node = "n1";
  return pod;
}

kube::Job suspended(kube::Job about) {
  about.suspended = true;
  return about;
}

std::vector<PodPtr> share(const std::vector<kube::Pod>& pods) {
  std::vector<PodPtr> shared;
  for (const kube::Pod& one : pods) shared.push_back(std::make_shared<kube::Pod>(one));
  return shared;
}

core::Run read(const kube::Job& about, const std::vector<kube::Pod>& pods,
               bool stop_asked = false) {
  const std::vector<PodPtr> shared = share(pods);
  return run_of_job({about, shared, stop_asked, kNow});
}

TEST(RunOfJob, KnowsItsNumberAndWorkers) {
  const core::Run run = read(job(2), {});
  EXPECT_EQ(run.id, 3);
  EXPECT_EQ(run.workers, 2);
  EXPECT_EQ(run.state, RunState::kPending);
}

TEST(RunOfJob, KnowsItsTargetAndHowItExited) {
  kube::Job about = job();
  about.metadata.annotations["fettle.dev/until-step"] = "9";
  const core::Run run = read(about, {with(pod("Failed"), ended(2))});
  EXPECT_EQ(run.until_step, 9);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_FALSE(read(job(), {deleted(with(pod("Failed"), ended(2)))}).exit_code);
}

TEST(RunOfJob, OrdinaryWaitingHasNoReason) {
  EXPECT_EQ(read(job(), {}).reason, "");
  EXPECT_EQ(read(job(), {pod("Pending")}).reason, "");
  EXPECT_EQ(read(job(), {with(pod("Pending"), waiting("ContainerCreating"))}).reason, "");
}

TEST(RunOfJob, WaitingThatSomebodyMustEndSaysWhy) {
  kube::Job old = job();
  old.metadata.created_ms = kNow - 60'000;
  const struct {
    kube::Job job;
    std::vector<kube::Pod> pods;
    std::string said;
  } cases[] = {
      {job(),
       {unschedulable(pod("Pending"), "0/3 nodes are available: 3 Insufficient gpu.")},
       "no node has room for it: 0/3 nodes are available: 3 Insufficient gpu."},
      {job(),
       {with(pod("Pending"), waiting("ErrImagePull", "no such image"))},
       "its image cannot be pulled: no such image"},
      {job(),
       {with(pod("Pending"), waiting("ImagePullBackOff",
                                     "Back-off pulling image \"x\": ErrImagePull: no such image"))},
       "its image cannot be pulled: no such image"},
      {job(),
       {with(pod("Pending"), waiting("CreateContainerConfigError", "no secret s"))},
       "its container cannot be started (CreateContainerConfigError): no secret s"},
      {old, {}, "no pod could be created yet; quota"},
      {suspended(job()), {}, "the Job is suspended: a queue such as Kueue"},
  };
  for (const auto& c : cases) {
    const core::Run run = read(c.job, c.pods);
    EXPECT_EQ(run.state, RunState::kPending) << c.said;
    EXPECT_THAT(run.reason, StartsWith(c.said));
  }
}

TEST(RunOfJob, RunsOnceItsContainerDoes) {
  const core::Run run = read(job(), {with(pod("Running"), running())});
  EXPECT_EQ(run.state, RunState::kRunning);
  EXPECT_EQ(run.pod_uid, "pod-0");
  EXPECT_EQ(run.started_ms, 900'000);
  EXPECT_EQ(read(job(), {with(pod("Pending"), waiting(""))}).pod_uid, "");
}

TEST(RunOfJob, RunsOnceAllWorkersDo) {
  const kube::Pod first = with(pod("Running", 0), running());
  const kube::Pod second = unschedulable(pod("Pending", 1), "full");
  EXPECT_EQ(read(job(2), {first}).state, RunState::kPending);
  EXPECT_THAT(read(job(2), {first, second}).reason, HasSubstr("full"));
  EXPECT_EQ(read(job(2), {first, with(pod("Running", 1), running())}).state, RunState::kRunning);
}

TEST(RunOfJob, EndsAreExplained) {
  const struct {
    kube::Pod pod;
    Outcome outcome;
    std::string said;
  } cases[] = {
      {with(pod("Succeeded"), ended(0, "Completed")), Outcome::kSucceeded, ""},
      {with(pod("Running"), ended(0, "Completed")), Outcome::kSucceeded, ""},
      {with(pod("Failed"), ended(3)), Outcome::kFailed, "exit code 3"},
      {with(pod("Failed"), ended(3, "Error", "no such file: data.csv\n")), Outcome::kFailed,
       "exit code 3; its last output:\nno such file: data.csv"},
      {with(pod("Failed"), ended(1, "Error", R"({"step": 1, "loss": 2})")), Outcome::kFailed,
       "exit code 1"},
      {with(pod("Failed"), ended(137, "OOMKilled")), Outcome::kOutOfMemory,
       "used more memory than its limit (resources.limits.memory)"},
      {with(pod("Failed"), ended(137)), Outcome::kDisrupted,
       "exit code 137: killed by SIGKILL, but not for its own memory limit; perhaps its node ran "
       "out of memory"},
      {with(pod("Failed"), ended(143)), Outcome::kDisrupted,
       "exit code 143, as if another process had sent it SIGTERM"},
      {with(pod("Failed"), ended(128, "StartError", "exec: \"trian\": not found")),
       Outcome::kFailed,
       "cannot start: exec: \"trian\": not found; correct command, args or image in the Study's "
       "template"},
      {deleted(with(pod("Failed"), ended(143))), Outcome::kDisrupted, "its pod was deleted"},
      {refused(pod("Failed"), "OutOfcpu", "Node didn't have enough resource"), Outcome::kDisrupted,
       "its node refused or lost the pod: OutOfcpu: Node didn't have enough resource"},
      {refused(with(pod("Failed"), ended(137)), "DeadlineExceeded", ""), Outcome::kTimedOut,
       "ran longer than its template's activeDeadlineSeconds"},
  };
  for (const auto& c : cases) {
    const core::Run run = read(job(), {c.pod});
    ASSERT_EQ(run.state, RunState::kExited) << c.said;
    EXPECT_EQ(run.outcome, c.outcome) << c.said;
    EXPECT_EQ(run.reason, c.said);
  }
}

TEST(RunOfJob, AnEndThatWeAskedForIsAStop) {
  for (const int code : {143, 1, 137}) {
    EXPECT_EQ(read(job(), {with(pod("Failed"), ended(code))}, true).outcome, Outcome::kStopped);
  }
  EXPECT_EQ(read(job(), {with(pod("Succeeded"), ended(0))}, true).outcome, Outcome::kSucceeded);
  kube::Job stopped = job();
  stopped.suspended = true;
  EXPECT_EQ(read(stopped, {}, true).outcome, Outcome::kStopped);
  stopped.active = 1;
  EXPECT_EQ(read(stopped, {}, true).state, RunState::kPending);
}

TEST(RunOfJob, ADisruptedPodIsReplacedSoTheRunGoesOn) {
  const kube::Pod lost = disrupted(with(pod("Failed"), ended(143)), "PreemptionByScheduler");
  const core::Run before = read(job(), {lost});
  EXPECT_EQ(before.state, RunState::kPending);
  EXPECT_EQ(before.reason,
            "its pod was disrupted (PreemptionByScheduler) and is made again: by "
            "PreemptionByScheduler");
  kube::Pod next = with(pod("Running"), running());
  next.metadata.created_ms = kNow;
  next.metadata.uid = "second";
  for (const auto& pods : {std::vector{lost, next}, std::vector{next, lost}}) {
    const core::Run after = read(job(), pods);
    EXPECT_EQ(after.state, RunState::kRunning);
    EXPECT_EQ(after.pod_uid, "second");
  }
}

TEST(RunOfJob, APodThatIsBeingEndedIsNotAtItsEnd) {
  EXPECT_EQ(read(job(), {deleted(with(pod("Running"), running()))}).state, RunState::kRunning);
}

// A pod that should have ended at kNow - `late_ms` and still says that it runs.
kube::Pod overdue(std::int64_t late_ms) {
  kube::Pod out = with(pod("Running"), running());
  out.metadata.deleted_ms = kNow - late_ms;
  out.node = "n1";
  return out;
}

TEST(RunOfJob, ANodeThatDoesNotAnswerIsWaitedForAndThenGivenUp) {
  EXPECT_EQ(read(job(), {overdue(kOverdueMs - 1)}).state, RunState::kRunning);
  const core::Run waits = read(job(), {overdue(kOverdueMs)});
  EXPECT_EQ(waits.state, RunState::kPending);
  EXPECT_THAT(waits.reason, StartsWith("its node n1 does not answer"));
  EXPECT_EQ(read(job(), {overdue(kLostMs - 1)}).state, RunState::kPending);
  const core::Run lost = read(job(), {overdue(kLostMs)});
  EXPECT_EQ(lost.outcome, Outcome::kDisrupted);
  EXPECT_THAT(lost.reason, StartsWith("its node n1 is lost"));
}

// A program without a fence may still write to its claim: only the end of the pod object rules that
// out.
TEST(RunOfJob, APodThatMayWriteToAClaimIsWaitedForUntilItIsGone) {
  kube::Pod writes = overdue(100 * kLostMs);
  writes.claims = {"shared"};
  std::vector<PodPtr> pods = share({writes});
  const kube::Job about = job();
  JobView view{about, pods, false, kNow};
  view.fenced = false;
  const core::Run waits = run_of_job(view);
  EXPECT_EQ(waits.state, RunState::kPending);
  EXPECT_THAT(waits.reason, HasSubstr("may still write to claim shared"));
  EXPECT_THAT(waits.reason, HasSubstr("kubectl delete pod -n"));
  view.fenced = true;
  EXPECT_EQ(run_of_job(view).outcome, Outcome::kDisrupted) << "the trainer has a fence";
  view.fenced = false;
  writes.claims.clear();
  pods = share({writes});
  EXPECT_EQ(run_of_job(view).outcome, Outcome::kDisrupted) << "it can write nowhere";
}

TEST(RunOfJob, AStopEndsBesideAPodThatMayStillWriteAndSaysThatItLives) {
  kube::Pod writes = overdue(100 * kLostMs);
  writes.claims = {"shared"};
  const std::vector<PodPtr> pods = share({writes});
  const kube::Job about = job();
  JobView view{about, pods, true, kNow};
  view.fenced = false;
  const core::Run stopped = run_of_job(view);
  EXPECT_EQ(stopped.outcome, Outcome::kStopped);
  EXPECT_TRUE(stopped.terminating) << "no other run may begin";
}

// A node was lost after the end of its pod, or the pod was collected: only exit code 0 is known, so
// the run is neither a failure nor a result.
TEST(RunOfJob, ACompleteJobWhosePodIsGoneHasAnUnknownResult) {
  kube::Job complete = job();
  complete.conditions.push_back({"Complete", "", "", kNow - 100});
  const core::Run run = read(complete, {});
  EXPECT_EQ(run.outcome, Outcome::kSucceeded);
  EXPECT_THAT(run.read_error, HasSubstr("its pod is gone"));
  EXPECT_EQ(read(complete, {with(pod("Succeeded"), ended(0))}).read_error, "");
}

// Many programs exit with 0 on SIGTERM. Only its report says whether this one was done
// (run_outcome.h).
TEST(RunOfJob, AProgramThatExitsWith0BecauseItsPodWasEndedIsDisrupted) {
  kube::Pod evicted = with(pod("Succeeded"), ended(0));
  evicted.conditions.push_back({"DisruptionTarget", "EvictionByEvictionAPI", "", 949'000});
  EXPECT_EQ(read(job(), {evicted}).outcome, Outcome::kDisrupted);
  EXPECT_EQ(read(job(), {evicted}).exit_code, 0);
  kube::Pod removed = with(pod("Succeeded"), ended(0));
  removed.doomed_ms = removed.metadata.deleted_ms = 949'000;
  EXPECT_EQ(read(job(), {removed}).outcome, Outcome::kDisrupted);
  removed.doomed_ms = removed.metadata.deleted_ms = 951'000;
  EXPECT_EQ(read(job(), {removed}).outcome, Outcome::kSucceeded) << "it had ended before";
}

TEST(RunOfJob, OnlyAnExitCodeThatNothingElseExplainsIsPresumed) {
  EXPECT_TRUE(read(job(), {with(pod("Failed"), ended(143))}).presumed);
  EXPECT_FALSE(read(job(), {deleted(with(pod("Failed"), ended(143)))}).presumed);
  EXPECT_FALSE(read(job(), {with(pod("Failed"), ended(137))}).presumed);
}

TEST(RunOfJob, AStopOnALostNodeEndsToo) {
  EXPECT_EQ(read(job(), {overdue(kLostMs - 1)}, true).state, RunState::kPending);
  EXPECT_EQ(read(job(), {overdue(kLostMs)}, true).outcome, Outcome::kStopped);
}

// The API server's clock may be behind ours: no pod is lost before we have waited ourselves.
TEST(RunOfJob, APodIsOverdueByOurOwnClockToo) {
  const std::vector<PodPtr> pods = share({overdue(10 * kLostMs)});
  const kube::Job about = job();
  JobView view{about, pods, false, kNow};
  view.ending_ms = kNow - 1'000;
  EXPECT_EQ(run_of_job(view).state, RunState::kRunning);
  view.ending_ms = kNow - kLostMs;
  EXPECT_EQ(run_of_job(view).outcome, Outcome::kDisrupted);
}

TEST(RunOfJob, AJobThatAQueueSuspendsAfterItRanWaits) {
  kube::Job queued = suspended(job());
  const std::vector<kube::Pod> cases[] = {{with(pod("Running"), running())},
                                          {deleted(with(pod("Running"), running()))},
                                          {deleted(with(pod("Failed"), ended(143)))},
                                          {deleted(with(pod("Failed"), ended(137)))},
                                          {}};
  for (const auto& pods : cases) {
    const core::Run run = read(queued, pods);
    EXPECT_EQ(run.state, RunState::kPending);
    EXPECT_TRUE(run.queued);
    EXPECT_THAT(run.reason, StartsWith("the Job is suspended: a queue"));
  }
  EXPECT_EQ(read(queued, {with(pod("Failed"), ended(3))}).outcome, Outcome::kFailed)
      << "it failed by itself before";
  EXPECT_EQ(read(queued, {with(pod("Succeeded"), ended(0))}).outcome, Outcome::kSucceeded);
  EXPECT_EQ(read(queued, {deleted(with(pod("Failed"), ended(143)))}, true).outcome,
            Outcome::kStopped)
      << "we suspended it ourselves";
  queued.suspended = false;
  EXPECT_EQ(read(queued, {deleted(with(pod("Failed"), ended(143)))}).outcome, Outcome::kDisrupted);
}

kube::Job in_queue(kube::Job about) {
  about.metadata.uid = "job-uid";
  about.metadata.labels["kueue.x-k8s.io/queue-name"] = "vision";
  return suspended(about);
}

// Its pods and the Job arrive by two watches: the Job is not suspended yet, or no longer.
TEST(RunOfJob, APodThatAQueueDeletesIsNoEndBeforeTheJobIsSeenSuspended) {
  kube::Job about = in_queue(job());
  about.suspended = false;
  const kube::Pod taken = deleted(with(pod("Failed"), ended(143)));
  EXPECT_NE(read(about, {taken}).state, RunState::kExited);
  EXPECT_EQ(read(about, {taken}, true).outcome, Outcome::kStopped) << "we have stopped it";
  about.conditions.push_back({"Failed", "", "BackoffLimitExceeded", kNow});
  EXPECT_EQ(read(about, {taken}).outcome, Outcome::kDisrupted) << "no pod follows";
}

TEST(RunOfJob, AQueueThatDoesNotAdmitIsToldAfterAWhile) {
  kube::Job about = in_queue(job());
  EXPECT_EQ(read(about, {}).reason, "") << "it has just been made";
  EXPECT_TRUE(read(about, {}).queued);
  about.metadata.created_ms = kNow - 60'000;
  EXPECT_THAT(read(about, {}).reason, HasSubstr("queue vision has not admitted it"));
  EXPECT_THAT(read(about, {}).reason, HasSubstr("-l kueue.x-k8s.io/job-uid=job-uid"));
}

// Kueue resets the start of a Job that it suspends.
TEST(RunOfJob, AJobThatWasJustAdmittedHasTimeToMakePods) {
  kube::Job about = in_queue(job(2));
  about.suspended = false;
  about.metadata.created_ms = kNow - 3'600'000;
  about.started_ms = kNow - 1'000;
  EXPECT_EQ(read(about, {}).reason, "");
  EXPECT_EQ(read(about, {}).unplaced_workers, 0);
  about.started_ms = 0;  // the Job controller has not seen it yet
  const std::vector<PodPtr> none;
  JobView view{about, none, false, kNow};
  view.resumed_ms = kNow - 1'000;
  EXPECT_EQ(run_of_job(view).reason, "");
  about.started_ms = kNow - 6'000;
  EXPECT_THAT(read(about, {}).reason, StartsWith("no pod could be created yet"));
  EXPECT_EQ(read(about, {}).unplaced_workers, 2);
}

TEST(RunOfJob, APreemptionIsToldAtOnce) {
  const kube::Job about = in_queue(job());
  const std::vector<PodPtr> none;
  JobView view{about, none, false, kNow};
  view.queue.preempted = true;
  view.queue.step = 22;
  EXPECT_THAT(run_of_job(view).reason,
              StartsWith("queue vision took its nodes back at step 22, and has not admitted it"));
}

TEST(RunOfJob, AJobThatItsQueueHasGivenUpIsDisruptedAndCostsNoMore) {
  const kube::Job about = in_queue(job());
  const std::vector<PodPtr> none;
  JobView view{about, none, false, kNow};
  view.queue.workload = {WorkloadView::State::kFinished, "w", "conflict for annotations"};
  const core::Run run = run_of_job(view);
  EXPECT_EQ(run.outcome, Outcome::kDisrupted);
  EXPECT_EQ(run.reason, "its queue has given its Job up: conflict for annotations");
  EXPECT_EQ(run.started_ms, run.ended_ms);
  EXPECT_FALSE(run.queued) << "it backs off, and does not try for ever";
  const std::vector<PodPtr> ending =
      share({deleted(scheduled(with(pod("Running"), running()), kNow))});
  JobView still_there{about, ending, false, kNow};
  still_there.queue = view.queue;
  EXPECT_EQ(run_of_job(still_there).state, RunState::kPending);
}

// The Job controller fails a suspended Job whose pod ends with a code that is not forgiven, and
// completes a Job whose pod ends with 0: neither is the trial's own end.
TEST(RunOfJob, AJobThatEndsBecauseItsQueueTookItsNodesBackWasPreempted) {
  for (const char* const end : {"Failed", "Complete"}) {
    kube::Job about = in_queue(job());
    about.conditions.push_back({end, "", "BackoffLimitExceeded", kNow});
    for (const int code : {0, 1, 137}) {
      const core::Run run = read(about, {deleted(with(pod("Failed"), ended(code)))});
      EXPECT_EQ(run.outcome, Outcome::kDisrupted) << end << code;
      EXPECT_TRUE(run.queued);
      EXPECT_EQ(run.exit_code, code);
      EXPECT_EQ(run.reason, "its queue took its nodes back");
    }
    EXPECT_EQ(read(about, {}).outcome, Outcome::kDisrupted);
    EXPECT_EQ(read(about, {deleted(with(pod("Failed"), ended(1)))}, true).outcome,
              Outcome::kStopped);
    EXPECT_EQ(read(about, {with(pod("Failed"), ended(1))}).outcome, Outcome::kFailed)
        << "it had ended by itself";
    EXPECT_FALSE(read(about, {with(pod("Failed"), ended(1))}).queued);
  }
}

TEST(RunOfJob, APodThatNoNodeTakesIsDisruptedTwiceAndThenTheTemplatesFault) {
  const std::vector<PodPtr> pods =
      share({refused(pod("Failed"), "UnexpectedAdmissionError", "Allocate failed: no device")});
  const kube::Job about = job();
  JobView view{about, pods, false, kNow};
  for (const int before : {0, 1}) {
    view.refused_before = before;
    EXPECT_EQ(run_of_job(view).outcome, Outcome::kDisrupted) << before;
    EXPECT_TRUE(was_refused(run_of_job(view).reason));
  }
  view.refused_before = 2;
  const core::Run run = run_of_job(view);
  EXPECT_EQ(run.outcome, Outcome::kFailed);
  EXPECT_THAT(run.reason, HasSubstr("Allocate failed: no device"));
  EXPECT_THAT(run.reason, HasSubstr("3 times in a row"));
}

TEST(RunOfJob, APodWithoutItsVolumeSaysWhatMayHoldIt) {
  const auto pending = [](std::int64_t since_ms) {
    return scheduled(with(pod("Pending"), waiting("ContainerCreating")), kNow - since_ms);
  };
  EXPECT_EQ(read(job(), {pending(119'000)}).reason, "");
  EXPECT_THAT(read(job(), {pending(120'000)}).reason,
              StartsWith("its node n1 has not prepared it for 2 minutes; is a Secret"));
  kube::Pod claims = pending(120'000);
  claims.claims = {"digits-checkpoints-1"};
  EXPECT_THAT(read(job(), {claims}).reason,
              HasSubstr("perhaps claim digits-checkpoints-1 is attached to another node"));
  claims.conditions.push_back({"PodReadyToStartContainers", "", "", kNow});
  EXPECT_EQ(read(job(), {claims}).reason, "") << "its image is pulled, which may take long";
}

TEST(RunOfJob, ANodesClockIsBoundedByTheControlPlanes) {
  const struct {
    std::int64_t node_says;
    std::int64_t began;
  } cases[] = {
      {kNow - 50'000, kNow - 50'000}, {kNow - 700'000, kNow - 60'000}, {kNow + 600'000, kNow}};
  for (const auto& c : cases) {
    kube::Container container = running();
    container.started_ms = c.node_says;
    const kube::Pod pod_there = scheduled(with(pod("Running"), container), kNow - 60'000);
    EXPECT_EQ(read(job(), {pod_there}).started_ms, c.began);
  }
}

TEST(RunOfJob, OneWorkerThatFailsEndsTheRun) {
  const core::Run run =
      read(job(2), {with(pod("Running", 0), running()), with(pod("Failed", 1), ended(2))});
  EXPECT_EQ(run.outcome, Outcome::kFailed);
  EXPECT_EQ(run.reason, "worker 1: exit code 2");
}

TEST(RunOfJob, AllWorkersMustSucceed) {
  const kube::Pod first = with(pod("Succeeded", 0), ended(0));
  EXPECT_EQ(read(job(2), {first, with(pod("Running", 1), running())}).state, RunState::kRunning);
  const core::Run run = read(job(2), {first, with(pod("Succeeded", 1), ended(0))});
  EXPECT_EQ(run.outcome, Outcome::kSucceeded);
  EXPECT_EQ(run.ended_ms, 950'000);
}

TEST(RunOfJob, WhereThePodsAreGoneTheJobSpeaks) {
  kube::Job complete = job();
  complete.conditions.push_back({"Complete", "", "", kNow});
  EXPECT_EQ(read(complete, {}).outcome, Outcome::kSucceeded);
  kube::Job failed = job();
  failed.conditions.push_back({"Failed", "BackoffLimitExceeded", "reached it", kNow});
  EXPECT_EQ(read(failed, {}).outcome, Outcome::kDisrupted);
  EXPECT_THAT(read(failed, {}).reason, HasSubstr("its pod is gone"));
  EXPECT_EQ(read(failed, {}, true).outcome, Outcome::kStopped);
  kube::Job going = job();
  going.metadata.deleted_ms = kNow;
  EXPECT_EQ(read(going, {}).outcome, Outcome::kDisrupted);
}

TEST(RunOfJob, TheTrialsContainerIsTheOneTheJobNames) {
  kube::Job named = job();
  named.metadata.annotations["fettle.dev/container"] = "train";
  kube::Pod both = pod("Running");
  both.containers = {ended(1), running()};
  both.containers[1].name = "train";
  EXPECT_EQ(read(named, {both}).state, RunState::kRunning);
}

TEST(RunOfJob, APodWithoutContainerStatusesCountsByItsPhase) {
  EXPECT_EQ(read(job(), {pod("Running")}).state, RunState::kRunning);
  EXPECT_EQ(read(job(), {pod("Succeeded")}).outcome, Outcome::kSucceeded);
  EXPECT_EQ(read(job(), {pod("Failed")}).outcome, Outcome::kFailed);
}

TEST(TerminationMessage, OneLineOfMetricsIsAReport) {
  const core::Run run =
      read(job(), {with(pod("Succeeded"), ended(0, "Completed",
                                                R"({"step": 9, "accuracy": 0.5, "final": true})"
                                                "\n"))});
  ASSERT_TRUE(run.report);
  EXPECT_EQ(run.report->step, 9);
  EXPECT_EQ(run.report->metrics.at("accuracy"), 0.5);
  EXPECT_TRUE(run.report->final_result);
  EXPECT_EQ(run.report->at_ms, 950'000);
}

TEST(TerminationMessage, AnythingElseIsNone) {
  const std::string bad[] = {"",
                             "garbage",
                             "[1, 2]",
                             "{\"step\": 9, \"loss\"",
                             "{}",
                             R"({"step": 1, "loss": "low"})",
                             "{\"step\": 1, \"loss\": 1}\n{\"step\": 2, \"loss\": 1}",
                             "{\"loss\": 1, \"x\": \"" + std::string(5000, 'x') + "\"}"};
  for (const std::string& message : bad) {
    EXPECT_FALSE(read_termination_message(ended(0, "", message))) << message;
  }
}

}  // namespace
}  // namespace fettle::kubernetes
