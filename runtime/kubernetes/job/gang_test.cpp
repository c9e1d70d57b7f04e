// The line of gangs, as tables: the state of the Jobs, and the steps that follow.
#include "runtime/kubernetes/job/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/fields/quantity.h"
#include "api/fields/timestamp.h"

namespace fettle::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr std::int64_t kNow = 1'000'000;
constexpr std::int64_t kTimeout = 120'000;

struct Stands {
  std::string name;
  std::string gang;  // "" = no gang
  std::int64_t created_ms = 0;
  std::int64_t with_node = 0;  // of 4
  std::int64_t opened_ms = kNow;
  bool suspended = false;
  std::int64_t held_ms = 0;  // 0: since the gang was opened
  std::int64_t with_pod = 4;
  std::int64_t refused = 0;
  std::string ns = "team";
  GangTurn turn = {};
};

Stands waiting(const std::string& name, std::int64_t created_ms) {
  return {name, "waiting", created_ms, 0, 0, true};
}

kube::Job job_of(const Stands& about) {
  kube::Job job;
  job.metadata.name = about.name;
  job.metadata.ns = about.ns;
  job.metadata.created_ms = about.created_ms;
  job.completions = 4;
  job.suspended = about.suspended;
  if (!about.gang.empty()) job.metadata.annotations[kGangAnnotation] = about.gang;
  if (about.opened_ms != 0) {
    job.metadata.annotations[kGangOpenedAnnotation] = api::format_timestamp(about.opened_ms);
  }
  return job;
}

std::vector<std::string> steps(const std::vector<Stands>& line) {
  std::vector<Gang> gangs;
  for (const Stands& about : line) {
    Gang gang{std::make_shared<kube::Job>(job_of(about)), about.with_node, about.with_pod,
              about.refused};
    if (about.with_node > 0) gang.held_ms = about.held_ms == 0 ? about.opened_ms : about.held_ms;
    gang.turn = about.turn;
    gangs.push_back(std::move(gang));
  }
  std::vector<std::string> out;
  for (const GangStep& step : next_gang_steps(gangs, kNow, kTimeout)) {
    out.push_back(step.job->metadata.name + " " + to_string(step.to));
  }
  return out;
}

TEST(GangLine, AJobThatKueueManagesIsNone) {
  kube::Job job = job_of(waiting("a", 5));
  EXPECT_EQ(gang_state(job), GangState::kWaiting);
  job.metadata.labels["kueue.x-k8s.io/queue-name"] = "team";
  EXPECT_EQ(gang_state(job), GangState::kNone);
  EXPECT_TRUE(is_suspended_by_others(job));
}

TEST(GangLine, TheOldestIsOpenedThenTheName) {
  EXPECT_THAT(steps({waiting("b", 5), waiting("a", 9)}), ElementsAre("b open"));
  EXPECT_THAT(steps({waiting("b", 5), waiting("a", 5)}), ElementsAre("a open"));
  EXPECT_THAT(steps({}), IsEmpty());
}

TEST(GangLine, TheNextWaitsUntilAllOfTheOneBeforeHaveANode) {
  EXPECT_THAT(steps({{"a", "open", 5, 3}, waiting("b", 6)}), IsEmpty());
  EXPECT_THAT(steps({{"a", "open", 5, 4}, waiting("b", 6)}), ElementsAre("a gathered", "b open"));
  EXPECT_THAT(steps({{"a", "gathered", 5, 3}, waiting("b", 6)}), ElementsAre("b open"))
      << "what happens to it later is no matter of the line";
}

TEST(GangLine, OneThatDoesNotGatherInTimeGivesWay) {
  const std::int64_t late = kNow - kTimeout;
  EXPECT_THAT(steps({{"a", "open", 5, 3, late + 1}, waiting("b", 6)}), IsEmpty());
  EXPECT_THAT(steps({{"a", "open", 5, 3, late}, waiting("b", 6)}),
              ElementsAre("a returned", "b open"));
  EXPECT_THAT(steps({{"a", "open", 5, 3, late}}), ElementsAre("a returned"))
      << "others may want its three nodes";
  EXPECT_THAT(steps({{"a", "open", 5, 0, late}}), IsEmpty()) << "it is in no other gang's way";
  EXPECT_THAT(steps({{"a", "open", 5, 0, late}, waiting("b", 6)}),
              ElementsAre("a returned", "b open"));
}

// Only gangs that hold something can wait for each other.
TEST(GangLine, OneWithoutANodeIsInNobodysWay) {
  Stands tried{"a", "open", 5, 0, kNow - 1'000};
  tried.ns = "crowd";
  EXPECT_THAT(steps({tried, waiting("b", 6)}), IsEmpty()) << "its pods were just created";
  tried.refused = 4;
  EXPECT_THAT(steps({tried, waiting("b", 6)}), ElementsAre("b open")) << "none has a node";
  tried.refused = 3;
  EXPECT_THAT(steps({tried, waiting("b", 6)}), IsEmpty()) << "one may still get a node";
  tried.opened_ms = kNow - kGatherMs;
  EXPECT_THAT(steps({tried, waiting("b", 6)}), ElementsAre("b open"));
  tried.with_node = 1;
  EXPECT_THAT(steps({tried, waiting("b", 6)}), IsEmpty()) << "it has a node, so it gathers";
}

TEST(GangLine, OneWithoutPodsIsInNobodysWay) {
  Stands open{"a", "open", 5, 0, kNow - kPodsPatienceMs + 1};
  open.ns = "crowd";
  open.with_pod = 0;
  EXPECT_THAT(steps({open, waiting("b", 6)}), IsEmpty());
  open.opened_ms = kNow - kPodsPatienceMs;
  EXPECT_THAT(steps({open, waiting("b", 6)}), ElementsAre("b open"));
}

// A quota allows some of its pods only: it would hold their nodes for nothing.
TEST(GangLine, OneThatMissesPodsGivesItsNodesBackSoon) {
  Stands part{"a", "open", 5, 2, kNow - kGatherMs + 1};
  part.with_pod = 2;
  EXPECT_THAT(steps({part, waiting("b", 6)}), IsEmpty());
  part.opened_ms = kNow - kGatherMs;
  EXPECT_THAT(steps({part, waiting("b", 6)}), ElementsAre("a returned", "b open"));
}

TEST(GangLine, OneGangWithoutANodeIsEnoughOfAStudy) {
  Stands tried{"a", "open", 5, 0, kNow - kGatherMs};
  EXPECT_THAT(steps({tried, waiting("b", 6)}), IsEmpty()) << "both are of one Study";
  Stands other = waiting("c", 7);
  other.ns = "two";
  EXPECT_THAT(steps({tried, waiting("b", 6), other}), ElementsAre("c open"));
}

// Two gangs held no node, and now each holds a part.
TEST(GangLine, OfTwoThatHoldNodesTheYoungerGivesWay) {
  Stands first{"a", "open", 5, 2, kNow - 3 * kTimeout, false, kNow - 20'000};
  Stands second{"b", "open", 6, 3, kNow - 3 * kTimeout, false, kNow - kGatherMs + 1};
  EXPECT_THAT(steps({first, second, waiting("c", 7)}), IsEmpty()) << "both may become complete";
  second.held_ms = kNow - kGatherMs;
  EXPECT_THAT(steps({first, second, waiting("c", 7)}), ElementsAre("b returned"));
}

// An autoscaler has added nodes after a long time: the gang's first worker has just got one.
TEST(GangLine, TheTimeToGatherBeginsWithTheFirstNode) {
  const Stands late{"a", "open", 5, 1, kNow - 3 * kTimeout, false, kNow - kTimeout + 1};
  EXPECT_THAT(steps({late, waiting("b", 6)}), IsEmpty());
}

TEST(GangLine, TurnsComeBeforeAge) {
  Stands old = waiting("old", 5);
  old.turn = {.ns = 4, .study = 4};
  Stands young = waiting("young", 9);
  young.ns = "two";
  young.turn = {.ns = 3, .study = 3};
  EXPECT_THAT(steps({old, young}), ElementsAre("young open"));
  young.turn = {.ns = 4, .study = 5};
  EXPECT_THAT(steps({old, young}), ElementsAre("old open"));
  old.turn.backoff_until_ms = kNow + 1;
  EXPECT_THAT(steps({old, young}), ElementsAre("young open")) << "it leaves its turn to others";
}

TEST(GangLine, ADeletionThatWasNotDoneIsDone) {
  EXPECT_THAT(steps({{"a", "returned", 5, 3}, waiting("b", 6)}),
              ElementsAre("a returned", "b open"));
}

TEST(GangLine, WhoeverStoppedOrEndedOrIsSuspendedByOthersHoldsNobodyUp) {
  Stands queued{"a", "open", 5, 0};
  queued.suspended = true;
  Stands stopped{"a", "stopped", 5, 2};
  stopped.suspended = true;
  for (const Stands& first : {queued, stopped}) {
    EXPECT_THAT(steps({first, waiting("b", 6)}), ElementsAre("b open"));
  }
  auto ended = std::make_shared<kube::Job>(job_of({"a", "open", 5, 2}));
  for (const char* condition : {"Complete", "Failed", "FailureTarget"}) {
    ended->conditions = {{condition, "", "", kNow}};
    EXPECT_THAT(next_gang_steps({{ended, 2}}, kNow + kTimeout, kTimeout), IsEmpty());
  }
}

TEST(GangLine, OneThatSomebodyResumedByHandIsOpen) {
  Stands resumed = waiting("a", kNow - 1'000);
  resumed.suspended = false;
  EXPECT_THAT(steps({resumed, waiting("b", kNow)}), IsEmpty());
}

TEST(GangLine, SuspendedByUsAndByOthersAreToldApart) {
  const struct {
    const char* gang;
    bool by_others;
  } cases[] = {
      {"", true}, {"waiting", false}, {"stopped", false}, {"open", true}, {"gathered", true}};
  for (const auto& c : cases) {
    Stands about{"a", c.gang};
    about.suspended = true;
    EXPECT_EQ(is_suspended_by_others(job_of(about)), c.by_others) << c.gang;
    about.suspended = false;
    EXPECT_FALSE(is_suspended_by_others(job_of(about))) << c.gang;
  }
}

TEST(GangLine, WhatAGangWaitsForIsTold) {
  std::vector<PodPtr> pods;
  for (int rank = 0; rank < 4; ++rank) {
    kube::Pod pod;
    pod.metadata.name = "a-" + std::to_string(rank);
    pod.metadata.labels["batch.kubernetes.io/job-completion-index"] = std::to_string(rank);
    pod.phase = "Pending";
    if (rank < 3) pod.node = "node";
    if (rank == 3) pod.unschedulable = "0/2 nodes are available";
    pods.push_back(std::make_shared<kube::Pod>(pod));
  }
  const struct {
    Stands job;
    bool has_pods;
    std::string said;
  } cases[] = {
      {waiting("a", kNow - 1'000), false, ""},
      {waiting("a", kNow - 60'000), false, "it waits in the queue for nodes"},
      {{"a", "open", 5, 3, kNow - 1'000}, true, "no node has room for it"},
      {{"a", "open", 5, 3, kNow - 6'000},
       true,
       "3 of 4 workers have a node; no node has room for it: 0/2 nodes are available"},
      {{"a", "open", 5, 3, kNow - 1'000}, false, ""},
      {{"a", "open", 5, 3, kNow - 6'000}, false, "no pod could be created yet"},
      {{"a", "returned", 5, 3}, true, "waits in the queue for nodes"},
  };
  for (const auto& c : cases) {
    const kube::Job job = job_of(c.job);
    const std::vector<PodPtr> seen = c.has_pods ? pods : std::vector<PodPtr>();
    JobView view{job, seen, /*stop_asked=*/false, kNow};
    view.gang_timeout_ms = kTimeout;
    const core::Run run = run_of_job(view);
    EXPECT_EQ(run.state, core::RunState::kPending);
    EXPECT_THAT(run.reason, HasSubstr(c.said));
    EXPECT_EQ(run.reason.empty(), c.said.empty()) << run.reason;
  }
  EXPECT_EQ(workers_with_node(job_of({"a", ""}), pods), 3);
}

TEST(GangLine, AReturnedGangNamesItsReason) {
  const auto why = [](const char* state, std::int64_t with_node, std::int64_t with_pod,
                      std::int64_t workers) {
    kube::Job job = job_of({"a", state, 5, 0, kNow - 2 * kTimeout});
    job.completions = workers;
    Gang gang{std::make_shared<kube::Job>(job), with_node, with_pod};
    return why_returned(gang, kNow, kTimeout);
  };
  const std::string time = api::format_duration(static_cast<double>(kTimeout) / 1000);
  EXPECT_THAT(why("open", 3, 4, 4), StartsWith("3 of 4 workers have a node after " + time + "; "));
  EXPECT_THAT(why("open", 2, 3, 4), HasSubstr(time + " (only 3 have a pod; quota"));
  EXPECT_THAT(why("open", 0, 1, 1), StartsWith("its pod has no node after " + time + "; it gives"));
  EXPECT_THAT(why("gathered", 3, 4, 4),
              StartsWith("a worker lost its node before all had started"));
}

}  // namespace
}  // namespace fettle::kubernetes
