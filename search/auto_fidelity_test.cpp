// Decisions of auto about steps for different Studies, and the settings that it leaves alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "api/study/study.h"
#include "api/trial/trial.h"
#include "search/rungs/promotion.h"
#include "search/study_problem.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using ::testing::HasSubstr;

// A Study with steps, whose image declares no checkpoints and whose budget counts trials.
api::StudySpec study() {
  api::StudySpec out;
  out.parameters = {testing::real("x", 0, 1)};
  out.objectives = {{.metric = "loss", .goal = {}}};
  out.resource.max = 27;
  out.budget.trials = 26;
  out.budget.parallelism = 4;
  return out;
}
void with_trainer(api::StudySpec& spec) { spec.trial.trainer.emplace(); }
void with_checkpoints(api::StudySpec& spec) { spec.trial.checkpoints.emplace(); }
void with_wall_time(api::StudySpec& spec) { spec.budget.wall_time = 3600; }
void with_gpu_hours(api::StudySpec& spec) { spec.budget.gpu_hours = 8; }
void with_few_trials(api::StudySpec& spec) { spec.budget.trials = 25; }
void with_one_step(api::StudySpec& spec) { spec.resource.max = 1; }
void with_two_objectives(api::StudySpec& spec) { spec.objectives.resize(2, spec.objectives[0]); }
void with_costs(api::StudySpec& spec) { spec.algorithm.cost_aware = true; }
void with_gp(api::StudySpec& spec) { spec.algorithm.name = api::AlgorithmKind::kGp; }
void with_median(api::StudySpec& spec) {
  spec.early_stopping.emplace().name = api::StoppingKind::kMedian;
}
void with_none(api::StudySpec& spec) {
  spec.early_stopping.emplace().name = api::StoppingKind::kNone;
}

// The description in the Study's status.
std::string description_of(const api::StudySpec& spec) {
  return make_sampler(problem_of(spec)).value()->description();
}

struct Case {
  const char* what;
  std::vector<void (*)(api::StudySpec&)> says;
  const char* algorithm;  // in force
  const char* rule;       // "" = none
  const char* status;     // part of the description in the status
};

TEST(AutoFidelity, SettlesEarlyStopping) {
  const Case cases[] = {
      {"only trials are counted", {with_trainer}, "auto", "", "since the budget counts trials"},
      {"the trainer resumes", {with_trainer, with_wall_time}, "bohb", "", "auto: bohb (rungs at 1"},
      {"GPU-hours are work, too", {with_trainer, with_gpu_hours}, "bohb", "", "limits the work"},
      {"an image says that it resumes",
       {with_checkpoints, with_gpu_hours},
       "bohb",
       "",
       "resume from their checkpoints"},
      {"an image says nothing", {with_wall_time}, "auto", "asha", "; asha stops poor trials"},
      {"costs count",
       {with_trainer, with_wall_time, with_costs},
       "auto",
       "",
       "what whole trials cost is counted"},
      {"few trials",
       {with_trainer, with_wall_time, with_few_trials},
       "auto",
       "",
       "since 25 are few enough for that"},
      {"no steps", {with_trainer, with_wall_time, with_one_step}, "auto", "", "auto: portfolio"},
      {"several objectives",
       {with_trainer, with_wall_time, with_two_objectives},
       "auto",
       "",
       "one objective on the way tells little"},
      {"another algorithm is set", {with_trainer, with_wall_time, with_gp}, "gp", "", "gp ("},
      {"a rule is set",
       {with_trainer, with_wall_time, with_median},
       "auto",
       "median",
       "auto: portfolio"},
      {"no rule is set", {with_trainer, with_wall_time, with_none}, "auto", "", "auto: portfolio"},
      {"no rule beside an algorithm", {with_gp, with_none}, "gp", "", "gp ("},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    api::StudySpec spec = study();
    for (const auto say : each.says) say(spec);
    const Problem problem = problem_of(spec);
    EXPECT_EQ(to_string(problem.algorithm.name), each.algorithm);
    EXPECT_EQ(problem.early_stopping ? to_string(problem.early_stopping->name) : "", each.rule);
    EXPECT_THAT(description_of(spec), HasSubstr(each.status));
    EXPECT_EQ(promotes(problem), problem.algorithm.name == api::AlgorithmKind::kBohb);
  }
}

TEST(AutoFidelity, ExplainsOnlyItsOwnDecisions) {
  api::StudySpec spec = study();
  with_median(spec);
  EXPECT_EQ(problem_of(spec).fidelity, "");
  EXPECT_THAT(description_of(spec), ::testing::EndsWith("a budget of 26 trials"));
}

TEST(AutoFidelity, RungsFollowTheRuleInForce) {
  api::Study whole;
  api::StudySpec& spec = whole.spec;
  spec = study();
  const auto rungs = [&whole] { return rung_steps(whole); };
  EXPECT_EQ(rungs(), std::vector<std::int64_t>());
  with_wall_time(spec);
  EXPECT_EQ(rungs(), (std::vector<std::int64_t>{1, 3, 9}));
  with_checkpoints(spec);
  EXPECT_EQ(rungs(), (std::vector<std::int64_t>{1, 3, 9}));
  with_none(spec);
  EXPECT_EQ(rungs(), std::vector<std::int64_t>());
}

TEST(AutoFidelity, TheRuleNoneStopsNoTrial) {
  const Problem problem = problem_of(study());
  api::EarlyStopping none;
  none.name = api::StoppingKind::kNone;
  History history;
  history.trials.push_back(Json::object({{"x", 0.5}}));
  history.events.push_back(testing::fact(0, api::FactKind::kRung, 1, 1e9));
  EXPECT_EQ(judge(problem, none, history, 0).verdict, Verdict::kContinue);
}

}  // namespace
}  // namespace fettle::search
