// Ready, Reconciling and Stalled as kstatus reads them. Its rules stand here as they are in
// sigs.k8s.io/cli-utils/pkg/kstatus/status: first the generation, then Reconciling and Stalled,
// then Ready; an object without any of them is Current.
#include "core/readiness.h"

#include <gtest/gtest.h>

#include "core/conditions.h"
#include "core/study/blocked.h"

namespace fettle::core {
namespace {

std::string kstatus(const api::Study& study) {
  if (study.status.observed_generation != study.metadata.generation) return "InProgress";
  for (const api::StatusCondition& condition : study.status.conditions) {
    if (condition.type == "Reconciling" && condition.status) return "InProgress";
    if (condition.type == "Stalled" && condition.status) return "Failed";
  }
  const api::StatusCondition* ready = find_condition(study.status.conditions, "Ready");
  return ready == nullptr || ready->status ? "Current" : "InProgress";
}

api::StatusCondition holds(const char* type, const char* reason, const char* message = "words") {
  return {.type = type, .status = true, .reason = reason, .message = message};
}

struct Case {
  const char* name;
  std::vector<api::StatusCondition> conditions;
  api::TrialCounts trials;
  std::string status;
  std::string reason;
};

TEST(Readiness, KstatusReadsTheStateOfAStudy) {
  const api::StatusCondition searching = holds("Running", "Searching");
  const Case cases[] = {
      {"before the first trial runs", {searching}, {.pending = 3}, "InProgress", "Starting"},
      {"while trials run", {searching}, {.pending = 1, .running = 2}, "Current", "Searching"},
      {"between two trials", {searching}, {.pending = 1, .completed = 4}, "Current", "Searching"},
      {"while it stops its trials",
       {holds("Running", "Stopping")},
       {.running = 2},
       "Current",
       "Stopping"},
      {"when all trials wait",
       {holds("Running", "Waiting")},
       {.pending = 2, .completed = 4},
       "InProgress",
       "Waiting"},
      {"behind an earlier Study of its name",
       {holds("Waiting", "EarlierTrials")},
       {},
       "InProgress",
       "EarlierTrials"},
      {"when what it needs is refused",
       {searching, holds("Blocked", "Refused")},
       {.running = 2},
       "Failed",
       "Blocked"},
      {"when it is suspended, and trials still run",
       {holds("Suspended", "Requested")},
       {.running = 1},
       "InProgress",
       "Suspending"},
      {"when it is suspended",
       {holds("Suspended", "Requested")},
       {.pending = 1, .completed = 2},
       "Current",
       "Suspended"},
      {"at a good end",
       {holds("Succeeded", "GoalReached")},
       {.completed = 4},
       "Current",
       "GoalReached"},
      {"at a bad end",
       {holds("Failed", "TooManyFailures"), holds("Blocked", "Refused")},
       {.failed = 4},
       "Failed",
       "TooManyFailures"},
      {"before anything is known of it", {}, {}, "InProgress", "NotBegun"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    api::Study study;
    study.metadata.generation = study.status.observed_generation = 3;
    study.status.conditions = c.conditions;
    study.status.trials = c.trials;
    set_readiness(study.status, 1'000);
    EXPECT_EQ(kstatus(study), c.status);
    const api::StatusCondition* ready = find_condition(study.status.conditions, "Ready");
    ASSERT_NE(ready, nullptr) << "kubectl wait --for=condition=Ready needs one to look at";
    EXPECT_EQ(ready->status, c.status == "Current");
    EXPECT_EQ(ready->reason, c.reason);
    study.metadata.generation = 4;
    EXPECT_EQ(kstatus(study), "InProgress") << "its new spec was not seen yet";
  }
}

TEST(Readiness, AStudyThatGetsOnAgainIsNotStalled) {
  api::Study study;
  study.metadata.generation = 1;
  study.status.conditions = {holds("Running", "Searching")};
  study.status.trials.running = 1;
  set_readiness(study.status, 1'000);
  study.status = blocked_status(study, "pods are forbidden: quota", 2'000);
  EXPECT_EQ(kstatus(study), "Failed") << "also if its generation was not observed before";
  EXPECT_EQ(find_condition(study.status.conditions, "Stalled")->message,
            "pods are forbidden: quota");
  study.status = blocked_status(study, "", 3'000);
  EXPECT_EQ(kstatus(study), "Current");
  EXPECT_FALSE(is_true(study.status.conditions, "Stalled"));
}

// Its new spec has to be acted on, though the API server refuses a write meanwhile.
TEST(Readiness, ARefusalDoesNotHideTheNewSpecOfAStudyThatIsOver) {
  api::Study study;
  study.metadata.generation = 2;
  study.status.observed_generation = 1;
  study.status.conditions = {holds("Failed", "InvalidSpec")};
  EXPECT_EQ(blocked_status(study, "no answer", 2'000).observed_generation, 1);
}

}  // namespace
}  // namespace fettle::core
